"""The clamped gate of gpt-oss in Triton: a program does one stretch of one row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "swiglu_clamped")

STRETCH = 1024


@triton.jit
def swiglu_clamped_kernel(x, y, x_stride, width, alpha, limit, STRETCH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    inside = column < width
    start = x + row * x_stride + column
    gate = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + width, mask=inside, other=0.0).to(tl.float32)
    # Why where: NaN stays NaN, which the least of two numbers need not keep.
    gate = tl.where(gate > limit, limit, gate)
    up = tl.where(up > limit, limit, up)
    up = tl.where(up < -limit, -limit, up)
    gated = (up + 1.0) * gate * tl.sigmoid(alpha * gate)
    tl.store(y + row * width + column, gated.to(y.dtype.element_ty), mask=inside)


def swiglu_clamped(x: Tensor, alpha: float = 1.702, limit: float = 7.0) -> Tensor:
    """See reference.py. The elements of a row lie side by side."""
    rows, width = x.shape[0], x.shape[1] // 2
    y = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    if y.numel():
        grid = (rows, triton.cdiv(width, STRETCH))
        swiglu_clamped_kernel[grid](x, y, x.stride(0), width, alpha, limit, STRETCH=STRETCH)
    return y


SPECIALISATIONS = (Specialisation("bf16", lambda: swiglu_clamped(meta(32, 2 * 2880))),)
