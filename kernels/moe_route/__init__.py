"""Which experts a token goes to, and with what weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
LOOSE = Traits(batch_invariant=False)
"""torch's kernels may do the last numbers of a tensor in another way than those before them."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.moe_route.reference import moe_route

    return moe_route


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.moe import moe_route

    return moe_route


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.moe import moe_reason

    return moe_reason(signature)


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.moe_route.triton import moe_route

    return moe_route


OPS = (
    Op(
        "moe_route",
        (
            Implementation(REFERENCE, _reference, traits=LOOSE),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
)
