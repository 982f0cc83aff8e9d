"""The weighted sum of a token's rows in Triton: a program does one stretch of one token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "moe_combine")

STRETCH = 1024
NONE = tl.constexpr(2**31 - 1)


@triton.jit
def moe_combine_kernel(
    rows, inverse, weights, y, rows_stride, width,
    TOP: tl.constexpr, PLACES: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    inside = column < width
    slot = tl.arange(0, PLACES)
    at = tl.load(inverse + token * TOP + slot, mask=slot < TOP, other=-1)
    weight = tl.load(weights + token * TOP + slot, mask=slot < TOP, other=0.0)
    left = at >= 0
    total = tl.zeros((STRETCH,), dtype=tl.float32)
    for _ in tl.static_range(TOP):
        row = tl.min(tl.where(left, at, NONE), axis=0)
        there = row < NONE
        its = tl.sum(tl.where(left & (at == row), weight, 0.0), axis=0)
        start = rows + tl.where(there, row, 0).to(tl.int64) * rows_stride
        part = (
            tl.load(start + column, mask=column < tl.where(there, width, 0), other=0.0).to(
                tl.float32
            )
            * its
        )
        total = tl.where(there, total + part, total)
        left = left & (at != row)
    to = y + token * width + column
    tl.store(to, total.to(y.dtype.element_ty), mask=inside)


def moe_combine(rows: Tensor, inverse: Tensor, weights: Tensor) -> Tensor:
    """See reference.py. The elements of a row lie side by side; inverse and weights are dense."""
    (tokens, top_k), width = inverse.shape, rows.shape[1]
    y = torch.empty((tokens, width), dtype=rows.dtype, device=rows.device)
    if y.numel():
        moe_combine_kernel[(tokens, triton.cdiv(width, STRETCH))](
            rows, inverse, weights, y, rows.stride(0), width,
            TOP=top_k, PLACES=triton.next_power_of_2(top_k), STRETCH=STRETCH,
        )  # fmt: skip
    return y


def _launch(top_k: int) -> None:
    inverse = meta(64, top_k, dtype=torch.int32)
    moe_combine(meta(64 * top_k, 2048), inverse, meta(64, top_k, dtype=torch.float32))


SPECIALISATIONS = (
    Specialisation("bf16 top 8", lambda: _launch(8)),
    Specialisation("bf16 top 2", lambda: _launch(2)),
)
