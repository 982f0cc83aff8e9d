"""gpt-oss's gated activation: both halves held within a limit, and the up projection plus one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
LOOSE = Traits(batch_invariant=False, graph_safe=True)
"""torch's kernels may do the last numbers of a tensor in another way than those before them."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.swiglu_clamped.reference import swiglu_clamped

    return swiglu_clamped


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.swiglu_clamped.triton import swiglu_clamped

    return swiglu_clamped


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import swiglu_clamped

    return swiglu_clamped


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.rows import rows_reason

    return rows_reason(signature)


OPS = (
    Op(
        "swiglu_clamped",
        (
            Implementation(REFERENCE, _reference, traits=LOOSE),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
