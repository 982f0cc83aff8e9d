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

__all__ = ("SPECIALISATIONS", "fp8_grouped_matmul", "fp8_grouped_matmul_masked")

BLOCK = 128
"""The checkpoint's quantisation block, a side of it."""


@triton.jit
def fp8_grouped_matmul_kernel(
    x, x_scales, w, w_scales, y, offsets, capacity, columns, width,
    EXPERTS: tl.constexpr, PLACES: tl.constexpr, MASKED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y[rows, columns] = x[rows, width] @ w[expert, columns, width].T. COLUMNS divides BLOCK."""
    across, blocks = tl.cdiv(columns, COLUMNS), tl.cdiv(width, BLOCK)
    tile, column_tile = tl.program_id(0) // across, tl.program_id(0) % across
    expert, first, end = expert_tile(tile, offsets, capacity, EXPERTS, PLACES, ROWS, MASKED)
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


def fp8_grouped_matmul(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    offsets: Tensor,
    x_scales: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """See reference.py. All are dense."""
    rows, (experts, columns, _) = x.shape[0], w.shape
    kind = x.dtype if x_scales is None else dtype
    y = torch.empty((rows, columns), dtype=kind, device=x.device)
    if y.numel():
        q = x
        if x_scales is None:
            q, x_scales = fp8_quant(x, BLOCK)
        down = _height(rows, experts)
        tiles = tiles_of(rows, experts, down)
        _launch(q, x_scales, w, scales, y, offsets, 0, tiles, down)
    return y


def fp8_grouped_matmul_masked(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    counts: Tensor,
    y: Tensor,
    x_scales: Tensor | None = None,
) -> None:
    """See reference.py. All are dense. Rows past an expert's count may be quantised too."""
    experts, capacity, width = x.shape
    if y.numel():
        q = x
        if x_scales is None:
            q, x_scales = fp8_quant(x.view(-1, width), BLOCK)
        down = _height(experts * capacity, experts)
        tiles = experts * triton.cdiv(capacity, down)
        _launch(q, x_scales, w, scales, y, counts, capacity, tiles, down)


def _height(rows: int, experts: int) -> int:
    return 64 if rows <= FEW_ROWS * experts else 128


def _launch(
    q: Tensor,
    x_scales: Tensor,
    w: Tensor,
    scales: Tensor,
    y: Tensor,
    offsets: Tensor,
    capacity: int,
    tiles: int,
    down: int,
) -> None:
    experts, columns, width = w.shape
    few = down == 64
    across = 32 if few else 128
    fp8_grouped_matmul_kernel[(tiles * triton.cdiv(columns, across),)](
        q, x_scales, w, scales, y, offsets, capacity, columns, width,
        EXPERTS=experts, PLACES=triton.next_power_of_2(experts), MASKED=capacity > 0,
        ROWS=down, COLUMNS=across, BLOCK=BLOCK,
        num_warps=4 if few else 8, num_stages=4 if few else 3,
    )  # fmt: skip


def _experts() -> tuple[Tensor, Tensor]:
    w = meta(128, 1536, 2048, dtype=torch.float8_e4m3fn)
    return w, meta(128, 12, 16, dtype=torch.float32)


def _declared(rows: int) -> None:
    fp8_grouped_matmul(meta(rows, 2048), *_experts(), meta(129, dtype=torch.int32))


def _masked(capacity: int) -> None:
    counts, y = meta(128, dtype=torch.int32), meta(128, capacity, 1536)
    x = meta(128, capacity, 2048, dtype=torch.float8_e4m3fn)
    x_scales = meta(128, capacity, 16, dtype=torch.float32)
    fp8_grouped_matmul_masked(x, *_experts(), counts, y, x_scales)


SPECIALISATIONS = (
    Specialisation("bf16 few rows", lambda: _declared(512), minimum=(8, 9), wgmma=True),
    Specialisation("bf16 many rows", lambda: _declared(65536), minimum=(8, 9), wgmma=True),
    Specialisation("masked, few rows", lambda: _masked(64), minimum=(8, 9), wgmma=True),
    Specialisation("masked, many rows", lambda: _masked(512), minimum=(8, 9), wgmma=True),
)
