"""Quantisation of activations to 8-bit floats, a scale for each group of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_quant.reference import fp8_quant

    return fp8_quant


OPS = (Op("fp8_quant", (Implementation(REFERENCE, _reference),)),)
