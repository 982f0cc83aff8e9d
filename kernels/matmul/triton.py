"""A dense product by a weight in Triton, whose bits a row's company does not change.

One size of tile for every batch, K in order, no sum that is split: what a GPU that is half empty
would gain by splitting is given up.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "matmul")

TYPES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
ROWS, COLUMNS = 64, 64
BAND = 8
"""Tiles of rows that meet a tile of the weight one after another, while it is in the cache."""


@triton.jit(do_not_specialize=["rows"])
def matmul_kernel(
    x, w, bias, y, rows, columns, width, x_stride, w_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr,
    BIAS: tl.constexpr, EVEN: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """y[rows, columns] = x[rows, width] @ w[columns, width].T + bias[columns]."""
    down, across = tl.cdiv(rows, ROWS), tl.cdiv(columns, COLUMNS)
    band = tl.program_id(0) // (BAND * across)
    height = tl.minimum(down - band * BAND, BAND)
    inner = tl.program_id(0) % (BAND * across)
    row = (band * BAND + inner % height) * ROWS + tl.arange(0, ROWS)
    column = inner // height * COLUMNS + tl.arange(0, COLUMNS)
    # Why no masks: what lies past the edge is read from inside and never stored.
    safe_row = tl.minimum(row, rows - 1).to(tl.int64)
    safe_column = (column % columns).to(tl.int64)
    place = tl.arange(0, DEPTH)
    x_tile = x + safe_row[:, None] * x_stride + place[None, :]
    w_tile = w + safe_column[None, :] * w_stride + place[:, None]
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
    if BIAS:
        total += tl.load(bias + safe_column).to(tl.float32)[None, :]
    to = y + row.to(tl.int64)[:, None] * columns + column[None, :]
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(to, total.to(y.dtype.element_ty), mask=inside)


def matmul(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """See reference.py. The elements of a row of x and of w lie side by side."""
    if x.stride(1) != 1:
        x = x.contiguous()
    (rows, width), columns = x.shape, w.shape[0]
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    if y.numel():
        depth = 32 if x.dtype == torch.float32 else 128
        tiles = triton.cdiv(rows, ROWS) * triton.cdiv(columns, COLUMNS)
        matmul_kernel[(tiles,)](
            x, w, y if bias is None else bias, y, rows, columns, width, x.stride(0), w.stride(0),
            ROWS=ROWS, COLUMNS=COLUMNS, DEPTH=depth, BAND=BAND, BIAS=bias is not None,
            EVEN=width % depth == 0,
            # Why: Triton's interpreter gets products of bfloat16 wrong.
            DOT=tl.float32 if x.device.type == "cpu" else TYPES[x.dtype],
            num_warps=4, num_stages=3,
        )  # fmt: skip
    return y


SPECIALISATIONS = (
    Specialisation("bf16", lambda: matmul(meta(32, 4096), meta(6144, 4096)), wgmma=True),
    Specialisation(
        "bf16 bias", lambda: matmul(meta(32, 2880), meta(5120, 2880), meta(5120)), wgmma=True
    ),
)
