"""Many matrix products in one launch in Triton: a program finds the expert that its tile is of.

Every output sums K in order with one width of instruction, whatever the batch; no sum is split. The
launch has as many programs as any distribution of the rows can need, so that the host reads no
count; those without a tile end at once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = (
    "SPECIALISATIONS",
    "expert_tile",
    "grouped_matmul",
    "grouped_matmul_masked",
    "tiles_of",
)

TYPES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
FEW_ROWS = 64
"""Of an expert on average: up to here the weights' bytes bind, and narrow tiles keep more of the
GPU reading them."""


@triton.jit
def expert_tile(
    tile, offsets, capacity,
    EXPERTS: tl.constexpr, PLACES: tl.constexpr, ROWS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """(expert, the tile's first row, the end of the expert's rows); nothing to do: first >= end.
    MASKED: `offsets` are counts, and expert e's rows begin at e * capacity."""
    if MASKED:
        height = tl.cdiv(capacity, ROWS)
        expert = tile // height
        first = expert * capacity + tile % height * ROWS
        end = expert * capacity + tl.load(offsets + expert)
    else:
        place = tl.arange(0, PLACES)
        inside = place < EXPERTS
        start = tl.load(offsets + place, mask=inside, other=0)
        stop = tl.load(offsets + place + 1, mask=inside, other=0)
        tiles = (stop - start + ROWS - 1) // ROWS
        until = tl.cumsum(tiles, axis=0)
        expert = tl.sum((inside & (until <= tile)).to(tl.int32), axis=0)
        its = place == expert
        before = tl.sum(tl.where(its, until - tiles, 0), axis=0)
        first = tl.sum(tl.where(its, start, 0), axis=0) + (tile - before) * ROWS
        end = tl.sum(tl.where(its, stop, 0), axis=0)
    return expert, first, end


@triton.jit
def grouped_matmul_kernel(
    x, w, y, offsets, capacity, columns, width,
    EXPERTS: tl.constexpr, PLACES: tl.constexpr, MASKED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    EVEN: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """y[rows, columns] = x[rows, width] @ w[expert of the row, columns, width].T."""
    across = tl.cdiv(columns, COLUMNS)
    tile = tl.program_id(0) // across
    expert, first, end = expert_tile(tile, offsets, capacity, EXPERTS, PLACES, ROWS, MASKED)
    if first >= end:
        return
    row = first + tl.arange(0, ROWS)
    column = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    # Why no masks: what lies past the edge is read from inside and never stored.
    safe_row = tl.minimum(row, end - 1).to(tl.int64)
    safe_column = (column % columns).to(tl.int64)
    place = tl.arange(0, DEPTH)
    weight = w + expert.to(tl.int64) * columns * width
    x_tile = x + safe_row[:, None] * width + place[None, :]
    w_tile = weight + safe_column[None, :] * width + place[:, None]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, width, DEPTH):
        if EVEN:
            a = tl.load(x_tile)
            b = tl.load(w_tile)
        else:
            left = width - start
            a = tl.load(x_tile, mask=place[None, :] < left, other=0.0)
            b = tl.load(w_tile, mask=place[:, None] < left, other=0.0)
        total = tl.dot(a.to(DOT), b.to(DOT), total, input_precision="ieee")
        x_tile += DEPTH
        w_tile += DEPTH
    to = y + row.to(tl.int64)[:, None] * columns + column[None, :]
    inside = (row < end)[:, None] & (column < columns)[None, :]
    tl.store(to, total.to(y.dtype.element_ty), mask=inside)


def grouped_matmul(x: Tensor, w: Tensor, offsets: Tensor) -> Tensor:
    """See reference.py. All are dense."""
    rows, (experts, columns, _) = x.shape[0], w.shape
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if y.numel():
        down = _height(rows, experts, x.dtype)
        _launch(x, w, y, offsets, 0, tiles_of(rows, experts, down), down)
    return y


def grouped_matmul_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    """See reference.py. All are dense."""
    experts, capacity, _ = x.shape
    if y.numel():
        down = _height(experts * capacity, experts, x.dtype)
        tiles = experts * triton.cdiv(capacity, down)
        _launch(x, w, y, counts, capacity, tiles, down)


def tiles_of(rows: int, experts: int, height: int) -> int:
    """The most tiles of that height that any distribution of the rows over experts needs."""
    return rows // height + min(rows, experts)


def _height(rows: int, experts: int, dtype: torch.dtype) -> int:
    return 64 if rows <= FEW_ROWS * experts or dtype == torch.float32 else 128


def _launch(
    x: Tensor, w: Tensor, y: Tensor, offsets: Tensor, capacity: int, tiles: int, down: int
) -> None:
    experts, columns, width = w.shape
    few, wide = down == 64, x.dtype == torch.float32
    depth = 32 if wide else 128 if few else 64
    across = 64 if few else 128
    grouped_matmul_kernel[(tiles * triton.cdiv(columns, across),)](
        x, w, y, offsets, capacity, columns, width,
        EXPERTS=experts, PLACES=triton.next_power_of_2(experts), MASKED=capacity > 0,
        ROWS=down, COLUMNS=across, DEPTH=depth, EVEN=width % depth == 0,
        # Why: Triton's interpreter gets products of bfloat16 wrong.
        DOT=tl.float32 if x.device.type == "cpu" else TYPES[x.dtype],
        num_warps=4 if few else 8, num_stages=3,
    )  # fmt: skip


def _declared(rows: int) -> None:
    offsets = meta(129, dtype=torch.int32)
    grouped_matmul(meta(rows, 2048), meta(128, 1536, 2048), offsets)


def _masked(capacity: int) -> None:
    w, counts = meta(128, 1536, 2048), meta(128, dtype=torch.int32)
    grouped_matmul_masked(meta(128, capacity, 2048), w, counts, meta(128, capacity, 1536))


SPECIALISATIONS = (
    Specialisation("bf16 few rows", lambda: _declared(512), wgmma=True),
    Specialisation("bf16 many rows", lambda: _declared(65536), wgmma=True),
    Specialisation("bf16 masked, few rows", lambda: _masked(64), wgmma=True),
    Specialisation("bf16 masked, many rows", lambda: _masked(512), wgmma=True),
)
