"""Block-quantised experts in torch: quantise the rows, dequantise, then multiply in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.fp8_matmul.reference import BLOCK, dequantised
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.grouped_matmul.reference import grouped_matmul

__all__ = ("fp8_grouped_matmul",)


def fp8_grouped_matmul(x: Tensor, w: Tensor, scales: Tensor, offsets: Tensor) -> Tensor:
    """x[R, K], w[E, N, K] float8_e4m3fn, scales[E, ceil(N / 128), ceil(K / 128)] float32,
    offsets[E + 1] int32 -> [R, N] in x's dtype: as grouped_matmul, each expert as fp8_matmul."""
    q, x_scales = fp8_quant(x, BLOCK)
    wide = q.float() * x_scales.repeat_interleave(BLOCK, dim=1)[:, : x.shape[1]]
    weights = torch.stack([dequantised(*each) for each in zip(w, scales, strict=True)])
    return grouped_matmul(wide, weights, offsets).to(x.dtype)
