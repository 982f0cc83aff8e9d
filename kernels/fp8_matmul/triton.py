"""The block-quantised matrix product in Triton: fp8 operands, float32 sums, scales per 128 of K.

Reads from left to right: every output sums its blocks of K in one order with one width of
instruction, whatever the batch; no sum is split.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.fp8_quant.triton import fp8_quant

__all__ = ("SPECIALISATIONS", "fp8_matmul")

BLOCK = 128
"""The checkpoint's quantisation block, a side of it."""
FEW_ROWS = 64
"""Up to here the weights' bytes bind, and narrow tiles keep more of the GPU reading them."""
BAND = 8
"""Row tiles that share the columns' tiles in the L2 cache."""


@triton.jit(do_not_specialize=["rows"])
def fp8_matmul_kernel(
    x, x_scales, w, w_scales, y, rows, columns, width,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, BAND: tl.constexpr,
):  # fmt: skip
    """y[rows, columns] = x[rows, width] @ w[columns, width].T. COLUMNS divides BLOCK."""
    program = tl.program_id(0)
    down, across = tl.cdiv(rows, ROWS), tl.cdiv(columns, COLUMNS)
    blocks = tl.cdiv(width, BLOCK)
    band = program // (BAND * across)
    height = tl.minimum(down - band * BAND, BAND)
    row_tile = band * BAND + (program % (BAND * across)) % height
    column_tile = (program % (BAND * across)) // height
    row = row_tile * ROWS + tl.arange(0, ROWS)
    column = column_tile * COLUMNS + tl.arange(0, COLUMNS)
    # Why modulo and no mask: what lies past the edge is read from inside and never stored.
    safe_row = (row % rows).to(tl.int64)
    safe_column = (column % columns).to(tl.int64)
    place = tl.arange(0, BLOCK)
    x_tile = x + safe_row[:, None] * width + place[None, :]
    w_tile = w + safe_column[None, :] * width + place[:, None]
    x_scale_row = x_scales + safe_row * blocks
    w_scale_row = w_scales + (column_tile * COLUMNS // BLOCK) * blocks
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for block in range(0, blocks):
        left = width - block * BLOCK
        a = tl.load(x_tile, mask=place[None, :] < left, other=0.0)
        b = tl.load(w_tile, mask=place[:, None] < left, other=0.0)
        scale = tl.load(x_scale_row + block) * tl.load(w_scale_row + block)
        total += tl.dot(a, b) * scale[:, None]
        x_tile += BLOCK
        w_tile += BLOCK
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    to = y + row.to(tl.int64)[:, None] * columns + column[None, :]
    tl.store(to, total.to(y.dtype.element_ty), mask=inside)


def fp8_matmul(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    x_scales: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """See reference.py. w, scales and a quantised x are dense."""
    rows, width = x.shape
    kind = x.dtype if x_scales is None else dtype
    q = x
    if x_scales is None:
        q, x_scales = fp8_quant(x, BLOCK)
    columns = w.shape[0]
    y = torch.empty((rows, columns), dtype=kind, device=x.device)
    if not y.numel():
        return y
    few = rows <= FEW_ROWS
    down, across = (64, 32) if few else (128, 128)
    fp8_matmul_kernel[(triton.cdiv(rows, down) * triton.cdiv(columns, across),)](
        q, x_scales, w, scales, y, rows, columns, width,
        ROWS=down, COLUMNS=across, BLOCK=BLOCK, BAND=BAND,
        num_warps=4 if few else 8, num_stages=4 if few else 3,
    )  # fmt: skip
    return y


def _launch(rows: int) -> None:
    w = meta(4096, 4096, dtype=torch.float8_e4m3fn)
    fp8_matmul(meta(rows, 4096), w, meta(32, 32, dtype=torch.float32))


SPECIALISATIONS = (
    Specialisation("bf16 few rows", lambda: _launch(32), minimum=(8, 9), wgmma=True),
    Specialisation("bf16 many rows", lambda: _launch(4096), minimum=(8, 9), wgmma=True),
)
