"""Block-quantised products of many experts in one launch in Triton: fp8 operands, float32 sums.

Tiles as in grouped_matmul, sums as in fp8_matmul: in order, whatever the batch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.fp8_quant.triton import fp8_quant
from tokenwire.kernels.grouped_matmul.triton import FEW_ROWS, expert_tile, tiles_of

__all__ = ("SPECIALISATIONS", "fp8_grouped_matmul")

BLOCK = 128
"""The checkpoint's quantisation block, a side of it."""


@triton.jit
def fp8_grouped_matmul_kernel(
    x, x_scales, w, w_scales, y, offsets, columns, width,
    EXPERTS: tl.constexpr, PLACES: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y[rows, columns] = x[rows, width] @ w[expert, columns, width].T. COLUMNS divides BLOCK."""
    across, blocks = tl.cdiv(columns, COLUMNS), tl.cdiv(width, BLOCK)
    tile, column_tile = tl.program_id(0) // across, tl.program_id(0) % across
    expert, first, end = expert_tile(tile, offsets, 0, EXPERTS, PLACES, ROWS, False)
    if first >= end:
        return
    row = first + tl.arange(0, ROWS)
    column = column_tile * COLUMNS + tl.arange(0, COLUMNS)
    # Why no masks: what lies past the edge is read from inside and never stored.
    safe_row = tl.minimum(row, end - 1).to(tl.int64)
    safe_column = (column % columns).to(tl.int64)
    place = tl.arange(0, BLOCK)
    weight = w + expert.to(tl.int64) * columns * width
    x_tile = x + safe_row[:, None] * width + place[None, :]
    w_tile = weight + safe_column[None, :] * width + place[:, None]
    x_scale_row = x_scales + safe_row * blocks
    band = expert * tl.cdiv(columns, BLOCK) + column_tile * COLUMNS // BLOCK
    w_scale_row = w_scales + band.to(tl.int64) * blocks
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for block in range(0, blocks):
        left = width - block * BLOCK
        a = tl.load(x_tile, mask=place[None, :] < left, other=0.0)
        b = tl.load(w_tile, mask=place[:, None] < left, other=0.0)
        scale = tl.load(x_scale_row + block) * tl.load(w_scale_row + block)
        total += tl.dot(a, b) * scale[:, None]
        x_tile += BLOCK
        w_tile += BLOCK
    to = y + row.to(tl.int64)[:, None] * columns + column[None, :]
    inside = (row < end)[:, None] & (column < columns)[None, :]
    tl.store(to, total.to(y.dtype.element_ty), mask=inside)


def fp8_grouped_matmul(x: Tensor, w: Tensor, scales: Tensor, offsets: Tensor) -> Tensor:
    """See reference.py. All are dense."""
    rows, (experts, columns, width) = x.shape[0], w.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if not y.numel():
        return y
    q, x_scales = fp8_quant(x, BLOCK)
    few = rows <= FEW_ROWS * experts
    down, across = (64, 32) if few else (128, 128)
    tiles = tiles_of(rows, experts, down)
    fp8_grouped_matmul_kernel[(tiles * triton.cdiv(columns, across),)](
        q, x_scales, w, scales, y, offsets, columns, width,
        EXPERTS=experts, PLACES=triton.next_power_of_2(experts),
        ROWS=down, COLUMNS=across, BLOCK=BLOCK,
        num_warps=4 if few else 8, num_stages=4 if few else 3,
    )  # fmt: skip
    return y


def _launch(rows: int) -> None:
    w = meta(128, 1536, 2048, dtype=torch.float8_e4m3fn)
    scales = meta(128, 12, 16, dtype=torch.float32)
    fp8_grouped_matmul(meta(rows, 2048), w, scales, meta(129, dtype=torch.int32))


SPECIALISATIONS = (
    Specialisation("bf16 few rows", lambda: _launch(512), minimum=(8, 9), wgmma=True),
    Specialisation("bf16 many rows", lambda: _launch(65536), minimum=(8, 9), wgmma=True),
)
