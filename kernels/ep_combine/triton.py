"""Experts' rows back in the order of their pairs, and a token's sum at home, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "ep_combine", "ep_return")

CHUNK = 1024
"""Pairs that a program counts."""
STRETCH = 1024
NONE = tl.constexpr(2**31 - 1)


@triton.jit(do_not_specialize=["total"])
def ep_here_kernel(inverse, counts, total, CHUNK: tl.constexpr):
    """How many pairs of a chunk are here."""
    pair = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    here = tl.load(inverse + pair, mask=pair < total, other=-1) >= 0
    tl.store(counts + tl.program_id(0), tl.sum(here.to(tl.int32), axis=0))


@triton.jit(do_not_specialize=["total"])
def ep_line_kernel(inverse, counts, order, total, CHUNK: tl.constexpr):
    """A chunk's pairs, after those of the chunks before it."""
    chunk = tl.program_id(0)
    before = 0
    for start in range(0, chunk, CHUNK):
        other = start + tl.arange(0, CHUNK)
        before += tl.sum(tl.load(counts + other, mask=other < chunk, other=0), axis=0)
    pair = chunk * CHUNK + tl.arange(0, CHUNK)
    at = tl.load(inverse + pair, mask=pair < total, other=-1)
    here = at >= 0
    to = before + tl.cumsum(here.to(tl.int32), axis=0) - 1
    tl.store(order + to, at, mask=here)


@triton.jit
def ep_fetch_kernel(rows, order, y, rows_stride, width, STRETCH: tl.constexpr):
    pair = tl.program_id(0)
    at = tl.load(order + pair).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    its = tl.load(rows + at * rows_stride + column, mask=column < width)
    tl.store(y + pair.to(tl.int64) * width + column, its, mask=column < width)


@triton.jit
def ep_combine_kernel(
    rows, inverse, weights, experts, y, rows_stride, width,
    TOP: tl.constexpr, PLACES: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    slot = tl.arange(0, PLACES)
    at = tl.load(inverse + token * TOP + slot, mask=slot < TOP, other=-1)
    weight = tl.load(weights + token * TOP + slot, mask=slot < TOP, other=0.0)
    key = tl.load(experts + token * TOP + slot, mask=slot < TOP, other=0)
    left = at >= 0
    total = tl.zeros((STRETCH,), dtype=tl.float32)
    for _ in tl.static_range(TOP):
        least = tl.min(tl.where(left, key, NONE), axis=0)
        there = least < NONE
        mine = left & (key == least)
        row = tl.sum(tl.where(mine, at, 0), axis=0)
        its = tl.sum(tl.where(mine, weight, 0.0), axis=0)
        start = rows + row.to(tl.int64) * rows_stride
        part = (
            tl.load(start + column, mask=column < tl.where(there, width, 0), other=0.0).to(
                tl.float32
            )
            * its
        )
        total = tl.where(there, total + part, total)
        left = left & (key != least)
    to = y + token * width + column
    tl.store(to, total.to(y.dtype.element_ty), mask=column < width)


def ep_return(rows: Tensor, inverse: Tensor, pairs: int) -> Tensor:
    """See reference.py. The elements of a row lie side by side; inverse is dense."""
    total, width = inverse.numel(), rows.shape[1]
    y = torch.empty((pairs, width), dtype=rows.dtype, device=rows.device)
    if not y.numel():
        return y
    chunks = triton.cdiv(total, CHUNK)
    counts, order = inverse.new_empty(chunks), inverse.new_empty(pairs)
    ep_here_kernel[(chunks,)](inverse, counts, total, CHUNK=CHUNK)
    ep_line_kernel[(chunks,)](inverse, counts, order, total, CHUNK=CHUNK)
    ep_fetch_kernel[(pairs, triton.cdiv(width, STRETCH))](
        rows, order, y, rows.stride(0), width, STRETCH=STRETCH
    )
    return y


def ep_combine(rows: Tensor, inverse: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """See reference.py. The elements of a row lie side by side; the others are dense. No expert is
    twice among those of a token that are anywhere."""
    (tokens, top_k), width = inverse.shape, rows.shape[1]
    y = torch.empty((tokens, width), dtype=rows.dtype, device=rows.device)
    if y.numel():
        ep_combine_kernel[(tokens, triton.cdiv(width, STRETCH))](
            rows, inverse, weights, experts, y, rows.stride(0), width,
            TOP=top_k, PLACES=triton.next_power_of_2(top_k), STRETCH=STRETCH,
        )  # fmt: skip
    return y


def _launch(top_k: int) -> None:
    places = meta(64, top_k, dtype=torch.int32)
    rows = meta(64 * top_k, 2048)
    back = ep_return(rows, places, 64 * top_k)
    ep_combine(back, places, meta(64, top_k, dtype=torch.float32), places)


SPECIALISATIONS = (
    Specialisation("bf16 top 8", lambda: _launch(8)),
    Specialisation("bf16 top 2", lambda: _launch(2)),
)
