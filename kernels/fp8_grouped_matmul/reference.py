"""Block-quantised experts in torch: quantise the rows, dequantise, then multiply in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.fp8_matmul.reference import dequantised, once_quantised
from tokenwire.kernels.grouped_matmul.reference import grouped_matmul, grouped_matmul_masked

__all__ = ("fp8_grouped_matmul", "fp8_grouped_matmul_masked")


def fp8_grouped_matmul(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    offsets: Tensor,
    x_scales: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """x[R, K], w[E, N, K] float8_e4m3fn, scales[E, ceil(N / 128), ceil(K / 128)] float32,
    offsets[E + 1] int32 -> [R, N] in x's dtype: as grouped_matmul, each expert as fp8_matmul. With
    x_scales[R, ceil(K / 128)] x is quantised already, and the result has `dtype`."""
    wide = once_quantised(x, x_scales)
    kind = x.dtype if x_scales is None else dtype
    return grouped_matmul(wide, _weights(w, scales), offsets).to(kind)


def fp8_grouped_matmul_masked(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    counts: Tensor,
    y: Tensor,
    x_scales: Tensor | None = None,
) -> None:
    """x[E, C, K], w and scales as above, counts[E] int32 -> into y[E, C, N], for the first
    counts[e] rows of each expert; the others of y stay. x_scales[E, C, ceil(K / 128)] as above."""
    flat = None if x_scales is None else x_scales.flatten(0, 1)
    wide = once_quantised(x.flatten(0, 1), flat).view(x.shape)
    grouped_matmul_masked(wide, _weights(w, scales), counts, y)


def _weights(w: Tensor, scales: Tensor) -> Tensor:
    return torch.stack([dequantised(*each) for each in zip(w, scales, strict=True)])
