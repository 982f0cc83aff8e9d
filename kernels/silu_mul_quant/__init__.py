"""The gated activation of a feed-forward layer, quantised to 8-bit floats for the next product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import fp8_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.silu_mul_quant.reference import silu_mul_quant

    return silu_mul_quant


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.silu_mul_quant.triton import silu_mul_quant

    return silu_mul_quant


OPS = (
    Op(
        "silu_mul_quant",
        (
            Implementation(REFERENCE, _reference),
            Implementation("triton", _triton, fp8_reason, FAST, 20),
        ),
    ),
)
