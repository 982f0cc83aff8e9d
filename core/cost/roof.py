"""What no layout and no batch exceeds: products with the weights that each token needs. Pure."""

from __future__ import annotations

from tokenwire.core.cost.gpus import Gpu
from tokenwire.core.cost.shape import ModelShape, Precision
from tokenwire.core.cost.weights import parameters

__all__ = ("active_parameters", "roof")


def active_parameters(shape: ModelShape) -> float:
    """Weights that one token is multiplied with, but for the head."""
    held = parameters(shape)
    experts = held.experts * shape.moe.top_k / shape.moe.experts if shape.moe else 0
    return held.attention + held.dense + held.shared + experts


def roof(shape: ModelShape, gpu: Gpu, precision: Precision) -> float:
    """Tokens/s of one GPU: peak / (2 x active parameters)."""
    peak = gpu.peak("fp8" if precision == "fp8" else "bf16")
    return peak / (2 * active_parameters(shape))
