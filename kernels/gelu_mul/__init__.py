"""The gated activation of a feed-forward layer: gelu(gate) * up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FLASHINFER, triton_reason, vendor_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
LOOSE = Traits(batch_invariant=False, graph_safe=True)
"""torch's kernels may do the last numbers of a tensor in another way than those before them."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.gelu_mul.reference import gelu_mul

    return gelu_mul


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.gelu_mul.triton import gelu_mul

    return gelu_mul


def _flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.gelu_mul.flashinfer import gelu_mul

    return gelu_mul


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import gelu_mul

    return gelu_mul


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.rows import rows_reason

    return rows_reason(signature)


def _vendor(signature: Signature) -> str:
    return vendor_reason(*FLASHINFER, signature)


OPS = (
    Op(
        "gelu_mul",
        (
            Implementation(REFERENCE, _reference, traits=LOOSE),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
            Implementation("flashinfer", _flashinfer, _vendor, FAST, 10),
        ),
    ),
)
