"""Quantisation of activations to 8-bit floats, a scale for each group of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import fp8_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_quant.reference import fp8_quant

    return fp8_quant


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_quant.triton import fp8_quant

    return fp8_quant


OPS = (
    Op(
        "fp8_quant",
        (
            Implementation(REFERENCE, _reference),
            Implementation("triton", _triton, fp8_reason, FAST, 20),
        ),
    ),
)
