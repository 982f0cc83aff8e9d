"""A dense product by a weight in torch, float32 inside."""

from __future__ import annotations

from torch import Tensor

__all__ = ("matmul",)


def matmul(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """x[T, K], w[N, K], bias[N] -> [T, N] in x's dtype: x @ w.T + bias, rounded once."""
    y = x.float() @ w.float().T
    return (y if bias is None else y + bias.float()).to(x.dtype)
