"""RMS norm in Triton: some rows a program, each row in one tile. Knows its launch, no op table."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "add_rms_norm", "rms_norm")

TILE = 2048
"""Elements of a program's tile, where a row is not longer: short rows share one program."""


@triton.jit(do_not_specialize=["rows"])
def rms_norm_kernel(
    x, weight, y, rows, inner, outer_stride, inner_stride, width, eps, offset,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Row r of x lies at (r // inner) * outer_stride + (r % inner) * inner_stride; y is dense."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    start = (row // inner) * outer_stride + (row % inner) * inner_stride
    wide = tl.load(x + start[:, None] + column[None, :], mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=1) / width + eps)
    gain = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32) + offset
    normed = wide * scale[:, None] * gain[None, :]
    tl.store(y + row[:, None] * width + column[None, :], normed.to(y.dtype.element_ty), mask=inside)


@triton.jit
def add_rms_norm_kernel(
    x, residual, weight, y, x_stride, residual_stride, width, eps, offset, WIDTH: tl.constexpr,
):  # fmt: skip
    """residual += x; y = norm(residual), of the sum as it was rounded."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = column < width
    place = residual + row * residual_stride + column
    added = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    added += tl.load(place, mask=inside, other=0.0).to(tl.float32)
    rounded = added.to(residual.dtype.element_ty)
    tl.store(place, rounded, mask=inside)
    wide = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=0) / width + eps)
    gain = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32) + offset
    tl.store(y + row * width + column, (wide * scale * gain).to(y.dtype.element_ty), mask=inside)


def rms_norm(x: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> Tensor:
    """See reference.py. Takes views of up to three dimensions without a copy."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if not y.numel():
        return y
    rows = x if x.dim() <= 3 and x.stride(-1) == 1 else x.reshape(-1, x.shape[-1])
    while rows.dim() < 3:
        rows = rows.unsqueeze(-2)
    width = x.shape[-1]
    padded = triton.next_power_of_2(width)
    together = max(1, TILE // padded)
    count = y.numel() // width
    rms_norm_kernel[(triton.cdiv(count, together),)](
        rows, weight, y, count, rows.shape[1], rows.stride(0), rows.stride(1), width,
        float(eps), float(offset), ROWS=together, WIDTH=padded, num_warps=_warps(padded),
    )  # fmt: skip
    return y


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float = 0.0
) -> tuple[Tensor, Tensor]:
    """See reference.py."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    if not y.numel():
        return y, residual
    width = x.shape[-1]
    padded = triton.next_power_of_2(width)
    add_rms_norm_kernel[(x.shape[0],)](
        x, residual, weight, y, x.stride(0), residual.stride(0), width,
        float(eps), float(offset), WIDTH=padded, num_warps=_warps(padded),
    )  # fmt: skip
    return y, residual


def _warps(padded: int) -> int:
    """So that a thread holds at most 16 elements of a row, up to 16 warps."""
    return min(16, max(4, padded // 512))


def _norm(width: int, dtype: torch.dtype = torch.bfloat16) -> None:
    rms_norm(meta(32, width, dtype=dtype), meta(width, dtype=dtype), 1e-6)


def _head_norm(heads: int, width: int) -> None:
    rms_norm(meta(32, 2 * heads, width)[:, :heads], meta(width), 1e-6)


def _add_norm(width: int, dtype: torch.dtype = torch.bfloat16) -> None:
    rows = meta(32, width, dtype=dtype)
    add_rms_norm(rows, meta(32, width, dtype=dtype), meta(width, dtype=dtype), 1e-6)


SPECIALISATIONS = (
    Specialisation("rms_norm bf16 1024", lambda: _norm(1024), gated=False),
    Specialisation("rms_norm bf16 2048", lambda: _norm(2048), gated=False),
    Specialisation("rms_norm bf16 4096", lambda: _norm(4096)),
    Specialisation("rms_norm bf16 8192", lambda: _norm(8192), gated=False),
    Specialisation("rms_norm bf16 heads of 128", lambda: _head_norm(8, 128)),
    Specialisation("add_rms_norm bf16 1024", lambda: _add_norm(1024), gated=False),
    Specialisation("add_rms_norm bf16 2048", lambda: _add_norm(2048), gated=False),
    Specialisation("add_rms_norm bf16 4096", lambda: _add_norm(4096)),
    Specialisation("add_rms_norm bf16 8192", lambda: _add_norm(8192), gated=False),
)
