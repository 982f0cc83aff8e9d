"""Rows into the order of their experts in Triton: a stable counting sort, then a gather.

A program of the sort does one expert: it counts the pairs of those before it, then gives its own
their places, in order. Nothing is added atomically, so every run gives the same order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "moe_permute")

CHUNK = 1024
STRETCH = 1024


@triton.jit(do_not_specialize=["pairs"])
def moe_permute_sort_kernel(experts, order, offsets, inverse, pairs, count, CHUNK: tl.constexpr):
    """Program `count` does the pairs that have no expert here."""
    expert = tl.program_id(0)
    place = tl.arange(0, CHUNK)
    before = 0
    for start in range(0, pairs, CHUNK):
        pair = start + place
        its = tl.load(experts + pair, mask=pair < pairs, other=-1)
        before += tl.sum(((its >= 0) & (its < expert)).to(tl.int32), axis=0)
    tl.store(offsets + expert, before)
    for start in range(0, pairs, CHUNK):
        pair = start + place
        inside = pair < pairs
        its = tl.load(experts + pair, mask=inside, other=-1)
        if expert == count:
            nobodys = inside & ((its < 0) | (its >= count))
            tl.store(inverse + pair, tl.full((CHUNK,), -1, tl.int32), mask=nobodys)
        else:
            mine = inside & (its == expert)
            to = before + tl.cumsum(mine.to(tl.int32), axis=0) - 1
            tl.store(inverse + pair, to, mask=mine)
            tl.store(order + to, pair, mask=mine)
            before += tl.sum(mine.to(tl.int32), axis=0)


@triton.jit
def moe_permute_gather_kernel(
    x, rows, order, last, x_stride, width, TOP: tl.constexpr, STRETCH: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    there = row < tl.load(last)
    token = (tl.load(order + row, mask=there, other=0) // TOP).to(tl.int64)
    values = tl.load(
        x + token * x_stride + column, mask=column < tl.where(there, width, 0), other=0.0
    )
    tl.store(rows + row.to(tl.int64) * width + column, values, mask=column < width)


def moe_permute(x: Tensor, experts: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """See reference.py. The elements of a row of x lie side by side; experts are dense."""
    (tokens, top_k), width = experts.shape, x.shape[1]
    pairs = tokens * top_k
    order = torch.empty(pairs, dtype=torch.int32, device=x.device)
    offsets = torch.empty(count + 1, dtype=torch.int32, device=x.device)
    inverse = torch.empty_like(experts)
    rows = torch.empty((pairs, width), dtype=x.dtype, device=x.device)
    moe_permute_sort_kernel[(count + 1,)](
        experts, order, offsets, inverse, pairs, count, CHUNK=CHUNK
    )
    if rows.numel():
        moe_permute_gather_kernel[(pairs, triton.cdiv(width, STRETCH))](
            x, rows, order, offsets[count:], x.stride(0), width, TOP=top_k, STRETCH=STRETCH
        )
    return rows, offsets, inverse


def _launch(top_k: int, count: int) -> None:
    moe_permute(meta(64, 2048), meta(64, top_k, dtype=torch.int32), count)


SPECIALISATIONS = (
    Specialisation("bf16 128 experts, top 8", lambda: _launch(8, 128)),
    Specialisation("bf16 8 experts, top 2", lambda: _launch(2, 8)),
)
