"""Rows by destination, and by expert where they arrive, in Triton: counting sorts and copies.

A program of a sort does one rank, or one expert: it counts what is before it, then gives its own
their places, in order. Nothing is added atomically, so every run gives the same order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.ep_dispatch.wire import GROUP, wire_of

__all__ = ("SPECIALISATIONS", "ep_pack", "ep_plan", "ep_unpack")

CHUNK = 1024
"""Pairs that a program of a sort looks at together."""
STRETCH = 1024
"""Words, or numbers, that a program of a copy moves."""


@triton.jit
def _mine(experts, token, tokens, first, slots, TOP: tl.constexpr, PLACES: tl.constexpr):
    """[tokens of a chunk, PLACES]: 1 where a pair's expert is among `slots` from `first` on."""
    slot = tl.arange(0, PLACES)
    inside = (token < tokens)[:, None] & (slot < TOP)[None, :]
    its = tl.load(experts + token[:, None] * TOP + slot[None, :], mask=inside, other=-1)
    return ((its >= first) & (its < first + slots)).to(tl.int32)


@triton.jit(do_not_specialize=["tokens"])
def ep_count_kernel(
    experts, counts, tokens, slots,
    TOP: tl.constexpr, PLACES: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    rank = tl.program_id(0)
    rows, pairs = 0, 0
    for start in range(0, tokens, CHUNK):
        token = start + tl.arange(0, CHUNK)
        each = tl.sum(_mine(experts, token, tokens, rank * slots, slots, TOP, PLACES), axis=1)
        rows += tl.sum((each > 0).to(tl.int32), axis=0)
        pairs += tl.sum(each, axis=0)
    tl.store(counts + rank * 2, rows)
    tl.store(counts + rank * 2 + 1, pairs)


@triton.jit(do_not_specialize=["tokens", "room"])
def ep_place_kernel(
    experts, counts, order, inverse, tokens, ranks, slots, room,
    TOP: tl.constexpr, PLACES: tl.constexpr, RANKS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Program `ranks` does the pairs that go nowhere, and the end of `order`."""
    rank = tl.program_id(0)
    other = tl.arange(0, RANKS)
    rows = tl.sum(tl.load(counts + other * 2, mask=other < rank, other=0), axis=0)
    pairs = tl.sum(tl.load(counts + other * 2 + 1, mask=other < rank, other=0), axis=0)
    slot = tl.arange(0, PLACES)
    if rank == ranks:
        for start in range(rows, room, CHUNK):
            place = start + tl.arange(0, CHUNK)
            tl.store(order + place, tl.full((CHUNK,), -1, tl.int32), mask=place < room)
        for start in range(0, tokens, CHUNK):
            token = start + tl.arange(0, CHUNK)
            known = _mine(experts, token, tokens, 0, ranks * slots, TOP, PLACES)
            inside = (token < tokens)[:, None] & (slot < TOP)[None, :] & (known == 0)
            to = inverse + token[:, None] * TOP + slot[None, :]
            tl.store(to, tl.full((CHUNK, PLACES), -1, tl.int32), mask=inside)
    else:
        for start in range(0, tokens, CHUNK):
            token = start + tl.arange(0, CHUNK)
            mine = _mine(experts, token, tokens, rank * slots, slots, TOP, PLACES)
            each = tl.sum(mine, axis=1)
            has = (each > 0).to(tl.int32)
            tl.store(order + rows + tl.cumsum(has, axis=0) - 1, token, mask=has > 0)
            at = pairs + (tl.cumsum(each, axis=0) - each)[:, None] + tl.cumsum(mine, axis=1) - 1
            tl.store(inverse + token[:, None] * TOP + slot[None, :], at, mask=mine > 0)
            rows += tl.sum(has, axis=0)
            pairs += tl.sum(each, axis=0)


@triton.jit
def ep_pack_kernel(
    x, order, experts, weights, scales, wire, x_stride, scales_stride, words, values, groups,
    TOP: tl.constexpr, PLACES: tl.constexpr, GROUPS: tl.constexpr, WEIGHS: tl.constexpr,
    ENDS: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    """`x` and `wire` in words. GROUPS: a power of two from `groups` on, 0: none. ENDS: one from
    the number of words that only fill a row up."""
    row = tl.program_id(0)
    token = tl.load(order + row)
    there = token >= 0
    token = tl.maximum(token, 0).to(tl.int64)
    to = wire + row.to(tl.int64) * words
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    its = tl.load(x + token * x_stride + column, mask=column < tl.where(there, values, 0), other=0)
    tl.store(to + column, its, mask=column < values)
    if tl.program_id(1) == 0:
        at = values
        if GROUPS:
            group = tl.arange(0, GROUPS)
            scale = tl.load(
                scales + token * scales_stride + group,
                mask=group < tl.where(there, groups, 0),
                other=0,
            )
            tl.store(to + at + group, scale, mask=group < groups)
            at += groups
        slot = tl.arange(0, PLACES)
        expert = tl.load(
            experts + token * TOP + slot, mask=slot < tl.where(there, TOP, 0), other=-1
        )
        tl.store(to + at + slot, expert, mask=slot < TOP)
        at += TOP
        if WEIGHS:
            weight = tl.load(
                weights + token * TOP + slot, mask=slot < tl.where(there, TOP, 0), other=0
            )
            tl.store(to + at + slot, weight, mask=slot < TOP)
            at += TOP
        end = at + tl.arange(0, ENDS)
        tl.store(to + end, tl.zeros((ENDS,), tl.int32), mask=end < words)


@triton.jit(do_not_specialize=["pairs", "room"])
def ep_sort_kernel(
    experts, offsets, inverse, pairs, words, first, count, room,
    TOP: tl.constexpr, MASKED: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """`experts`: the first of a wire's. Program `count` does the pairs that have no expert here."""
    expert = tl.program_id(0)
    place = tl.arange(0, CHUNK)
    before = 0
    for start in range(0, pairs, CHUNK):
        pair = start + place
        at = (pair // TOP).to(tl.int64) * words + pair % TOP
        its = tl.load(experts + at, mask=pair < pairs, other=-1) - first
        before += tl.sum(((pair < pairs) & (its >= 0) & (its < expert)).to(tl.int32), axis=0)
    tl.store(offsets + expert, before)
    if MASKED:
        before = expert * room
    for start in range(0, pairs, CHUNK):
        pair = start + place
        inside = pair < pairs
        at = (pair // TOP).to(tl.int64) * words + pair % TOP
        its = tl.load(experts + at, mask=inside, other=-1) - first
        if expert == count:
            nobodys = inside & ((its < 0) | (its >= count))
            tl.store(inverse + pair, tl.full((CHUNK,), -1, tl.int32), mask=nobodys)
        else:
            mine = inside & (its == expert)
            to = before + tl.cumsum(mine.to(tl.int32), axis=0) - 1
            tl.store(inverse + pair, to, mask=mine)
            before += tl.sum(mine.to(tl.int32), axis=0)


@triton.jit
def ep_spread_kernel(wire, rows, inverse, words, values, TOP: tl.constexpr, STRETCH: tl.constexpr):
    """Both in words: the row of a pair to its place."""
    pair = tl.program_id(0)
    to = tl.load(inverse + pair)
    if to >= 0:
        column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
        its = tl.load(wire + (pair // TOP).to(tl.int64) * words + column, mask=column < values)
        tl.store(rows + to.to(tl.int64) * values + column, its, mask=column < values)


@triton.jit
def ep_widen_kernel(
    wire, scales, rows, inverse, words, width,
    TOP: tl.constexpr, GROUP: tl.constexpr, STRETCH: tl.constexpr,
):  # fmt: skip
    """As ep_spread_kernel, of fp8: `wire` in bytes, `scales` the first of its words of scales."""
    pair = tl.program_id(0)
    to = tl.load(inverse + pair)
    if to >= 0:
        column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
        inside = column < width
        start = (pair // TOP).to(tl.int64) * words
        its = tl.load(wire + start * 4 + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(scales + start + column // GROUP, mask=inside, other=0.0)
        wide = (its * scale).to(rows.dtype.element_ty)
        tl.store(rows + to.to(tl.int64) * width + column, wide, mask=inside)


def ep_plan(experts: Tensor, ranks: int, slots: int) -> tuple[Tensor, Tensor, Tensor]:
    """See reference.py. experts are dense."""
    tokens, top_k = experts.shape
    room = tokens * min(top_k, ranks)
    counts = experts.new_empty(ranks, 2)
    order, inverse = experts.new_empty(room), torch.empty_like(experts)
    places = triton.next_power_of_2(top_k)
    chunk = CHUNK // places
    ep_count_kernel[(ranks,)](experts, counts, tokens, slots, TOP=top_k, PLACES=places, CHUNK=chunk)
    ep_place_kernel[(ranks + 1,)](
        experts, counts, order, inverse, tokens, ranks, slots, room,
        TOP=top_k, PLACES=places, RANKS=triton.next_power_of_2(ranks), CHUNK=chunk,
    )  # fmt: skip
    return counts, order, inverse


def ep_pack(
    x: Tensor,
    order: Tensor,
    experts: Tensor,
    weights: Tensor | None = None,
    scales: Tensor | None = None,
) -> Tensor:
    """See reference.py. The elements of a row of x lie side by side; experts and weights are
    dense."""
    top_k = experts.shape[1]
    form = wire_of(
        x.shape[1], x.dtype, top_k, has_weights=weights is not None, is_fp8=scales is not None
    )
    given = x.view(torch.int32)
    wire = torch.empty((order.numel(), form.words), dtype=torch.int32, device=x.device)
    if wire.numel():
        ep_pack_kernel[(order.numel(), triton.cdiv(form.values, STRETCH))](
            given, order, experts,
            None if weights is None else weights.view(torch.int32),
            None if scales is None else scales.view(torch.int32),
            wire, given.stride(0), 0 if scales is None else scales.stride(0),
            form.words, form.values, form.scales,
            TOP=top_k, PLACES=triton.next_power_of_2(top_k),
            GROUPS=triton.next_power_of_2(form.scales) if form.scales else 0,
            WEIGHS=form.has_weights, ENDS=4, STRETCH=STRETCH,
        )  # fmt: skip
    return wire


def ep_unpack(
    wire: Tensor,
    rows: Tensor,
    top_k: int,
    first: int,
    count: int,
    is_fp8: bool = False,
    scales: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """See reference.py. wire, rows and scales are dense."""
    width = rows.shape[-1]
    form = wire_of(width, rows.dtype, top_k, has_weights=False, is_fp8=is_fp8)
    tokens, words = wire.shape
    pairs = tokens * top_k
    offsets = wire.new_empty(count + 1)
    inverse = wire.new_empty(tokens, top_k)
    ep_sort_kernel[(count + 1,)](
        wire[:, form.experts :], offsets, inverse, pairs, words, first, count, rows.shape[1],
        TOP=top_k, MASKED=rows.dim() == 3, CHUNK=CHUNK,
    )  # fmt: skip
    if not (pairs and rows.numel()):
        return offsets, inverse
    if scales is not None:
        _spread(wire, rows, inverse, form.values)
        _spread(wire[:, form.values :], scales, inverse, form.scales)
    elif is_fp8:
        ep_widen_kernel[(pairs, triton.cdiv(width, STRETCH))](
            wire.view(torch.float8_e4m3fn), wire.view(torch.float32)[:, form.values :], rows,
            inverse, words, width, TOP=top_k, GROUP=GROUP, STRETCH=STRETCH,
        )  # fmt: skip
    else:
        _spread(wire, rows, inverse, form.values)
    return offsets, inverse


def _spread(wire: Tensor, rows: Tensor, inverse: Tensor, values: int) -> None:
    """The first so many words of each row."""
    ep_spread_kernel[(inverse.numel(), triton.cdiv(values, STRETCH))](
        wire, rows.view(torch.int32), inverse, wire.stride(0), values,
        TOP=inverse.shape[1], STRETCH=STRETCH,
    )  # fmt: skip


def _travel(top_k: int, ranks: int, slots: int, *, is_fp8: bool) -> None:
    """What a rank launches to send rows, and to read them."""
    experts = meta(64, top_k, dtype=torch.int32)
    x = meta(64, 2048, dtype=torch.float8_e4m3fn if is_fp8 else torch.bfloat16)
    scales = meta(64, 16, dtype=torch.float32) if is_fp8 else None
    _, order, _ = ep_plan(experts, ranks, slots)
    wire = ep_pack(x, order, experts, meta(64, top_k, dtype=torch.float32), scales)
    ep_unpack(wire, meta(512, 2048), top_k, slots, slots, is_fp8)
    ep_unpack(wire, meta(slots, 512, 2048), top_k, slots, slots, is_fp8)
    if is_fp8:
        rows, room = meta(512, 2048, dtype=x.dtype), meta(512, 16, dtype=torch.float32)
        ep_unpack(wire, rows, top_k, slots, slots, is_fp8, room)


SPECIALISATIONS = (
    Specialisation("bf16 top 8, 8 ranks of 16", lambda: _travel(8, 8, 16, is_fp8=False)),
    Specialisation(
        "fp8 top 8, 8 ranks of 32", lambda: _travel(8, 8, 32, is_fp8=True), minimum=(8, 9)
    ),
)
