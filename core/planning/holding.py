"""In what precision the engine holds a model's weights, beside the published one and a plan's."""

from __future__ import annotations

from typing import Final

from tokenwire.core.cost.shape import ModelShape, Precision
from tokenwire.core.cost.weights import weight_bytes

__all__ = ("held_as", "is_dequantised", "weights_note")

HELD: Final[dict[Precision, Precision]] = {"bf16": "bf16", "fp8": "fp8", "mxfp4": "bf16"}
"""Published -> held, unless a node's settings say otherwise: no product takes weights of 4 bits."""


def held_as(shape: ModelShape) -> Precision:
    """What a plan reckons with, where it is not told."""
    return HELD[shape.precision]


def is_dequantised(shape: ModelShape, precision: Precision) -> bool:
    """Whether a node's settings must say `quantisation: none` for a plan of that precision."""
    return held_as(shape) == "fp8" and precision == "bf16"


def weights_note(shape: ModelShape, precision: Precision) -> str:
    """A sentence where what is planned with is not what is published, or not what the engine holds;
    else nothing."""
    held = held_as(shape)
    if precision == held == shape.precision:
        return ""
    published = f"Published in {shape.precision} ({_size(shape, shape.precision)})"
    if precision == held:
        return f"{published}: the engine holds them dequantised, in {held}."
    if is_dequantised(shape, precision):
        return f"{published}: with quantisation: none the engine dequantises them."
    return (
        f"The engine holds them in {held} ({_size(shape, held)}), not in {precision}: the plan "
        "is for another engine."
    )


def _size(shape: ModelShape, precision: Precision) -> str:
    return f"{weight_bytes(shape, precision) / 1e9:,.1f} GB"
