"""How far two results are apart: a scale-free metric and the largest difference. Judges nothing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ("BOUNDS", "Distance", "bound", "distance", "metric")

BOUNDS = {
    torch.float32: 1e-6,
    torch.float16: 1e-5,
    torch.bfloat16: 1e-4,
    torch.float8_e4m3fn: 1e-3,
}
"""The largest metric that rounding of a dtype explains."""


@dataclass(frozen=True, slots=True)
class Distance:
    metric: float
    max_abs: float


def metric(x: Tensor, y: Tensor) -> float:
    """1 - 2<x,y> / (<x,x> + <y,y>) in float64: 0 for equal, 2 for opposite; nan where either
    holds a nan. Two results of zeros are equal. Infinities must stand at the same places, with the
    same sign, and are left out; otherwise the metric is inf."""
    left, right = x.detach().double().flatten(), y.detach().double().flatten()
    if left.shape != right.shape:
        raise ValueError(f"results of two shapes: {tuple(x.shape)} and {tuple(y.shape)}")
    infinite = left.isinf() | right.isinf()
    if bool(infinite.any()):
        if not torch.equal(left[infinite], right[infinite]):
            return float("inf")
        left, right = left[~infinite], right[~infinite]
    total = float(left @ left + right @ right)
    if total == 0.0:
        return 0.0
    return float(((left - right) @ (left - right)) / total)


def distance(x: Tensor, y: Tensor) -> Distance:
    """Metric and largest absolute difference of two tensors of one shape."""
    apart = metric(x, y)
    left, right = x.detach().double(), y.detach().double()
    same = left == right
    difference = torch.where(same, 0.0, (left - right).abs())
    largest = float(difference.max()) if difference.numel() else 0.0
    return Distance(apart, largest)


def bound(dtype: torch.dtype) -> float:
    """The metric's bound for results of a dtype; 0 for integers and booleans: equal or wrong."""
    return BOUNDS.get(dtype, 0.0)
