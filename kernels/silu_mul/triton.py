"""silu(gate) * up in Triton: a program does one stretch of one row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "silu_mul")

STRETCH = 1024


@triton.jit
def silu_mul_kernel(x, y, x_stride, width, STRETCH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    inside = column < width
    start = x + row * x_stride + column
    gate = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + width, mask=inside, other=0.0).to(tl.float32)
    gated = gate * tl.sigmoid(gate) * up
    tl.store(y + row * width + column, gated.to(y.dtype.element_ty), mask=inside)


def silu_mul(x: Tensor) -> Tensor:
    """See reference.py. The elements of a row lie side by side."""
    rows, width = x.shape[0], x.shape[1] // 2
    y = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    if y.numel():
        grid = (rows, triton.cdiv(width, STRETCH))
        silu_mul_kernel[grid](x, y, x.stride(0), width, STRETCH=STRETCH)
    return y


SPECIALISATIONS = (Specialisation("bf16", lambda: silu_mul(meta(32, 2 * 4096))),)
