"""A block-quantised linear layer in torch: dequantise, then multiply in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.fp8_quant.reference import fp8_quant

__all__ = ("BLOCK", "dequantised", "fp8_matmul", "once_quantised")

BLOCK = 128


def fp8_matmul(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    x_scales: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """x[T, K] @ w[N, K].T -> [T, N] in x's dtype.

    w is float8_e4m3fn with scales[ceil(N / 128), ceil(K / 128)] float32. x is quantised on the way,
    by groups of 128, as the checkpoints of this kind define it (their activation scheme `dynamic`).
    With x_scales[T, ceil(K / 128)] it is so already, by fp8_quant, and the result has `dtype`.
    """
    kind = x.dtype if x_scales is None else dtype
    return (once_quantised(x, x_scales) @ dequantised(w, scales).T).to(kind)


def once_quantised(x: Tensor, x_scales: Tensor | None) -> Tensor:
    """x[T, K] as 8-bit floats keep it, in float32; with x_scales it is of them already."""
    q = x
    if x_scales is None:
        q, x_scales = fp8_quant(x, BLOCK)
    return q.float() * x_scales.repeat_interleave(BLOCK, dim=1)[:, : x.shape[1]]


def dequantised(w: Tensor, scales: Tensor) -> Tensor:
    """w[N, K] as float32, each block of 128 x 128 times its scale."""
    rows, width = w.shape
    spread = scales.repeat_interleave(BLOCK, dim=0)[:rows]
    return w.float() * spread.repeat_interleave(BLOCK, dim=1)[:, :width]
