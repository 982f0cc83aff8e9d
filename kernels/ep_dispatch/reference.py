"""Rows by destination, and by expert where they arrive, in torch.

Rank r of a group holds the physical experts [r * slots, (r + 1) * slots). A token goes once to each
rank that has one of its experts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.ep_dispatch.wire import GROUP, wire_of
from tokenwire.kernels.moe_permute.reference import sorted_pairs

__all__ = ("ep_pack", "ep_plan", "ep_unpack")


def ep_plan(experts: Tensor, ranks: int, slots: int) -> tuple[Tensor, Tensor, Tensor]:
    """experts[T, k] int32, physical -> (counts[ranks, 2] int32, order[T min(k, ranks)] int32,
    inverse[T, k] int32).

    counts[r] is how many rows go to rank r, and how many pairs (row, expert there) they make.
    `order` has the token of each row, by rank and then by token; -1 after the last. `inverse` is a
    pair's place among all pairs in the order of rank, token, column: that in which results come
    back. A pair whose expert is not in [0, ranks * slots) goes nowhere: its inverse is -1.
    """
    tokens, top_k = experts.shape
    known = (experts >= 0) & (experts < ranks * slots)
    rank = torch.where(known, experts // slots, ranks).long()
    pairs = (rank[..., None] == torch.arange(ranks, device=experts.device)).sum(1)
    rows = pairs > 0
    counts = torch.stack((rows.sum(0), pairs.sum(0)), dim=1).int()
    room = tokens * min(top_k, ranks)
    order = torch.full((room,), -1, dtype=torch.int32, device=experts.device)
    found = rows.T.nonzero()[:, 1].int()
    order[: found.numel()] = found
    _, _, inverse = sorted_pairs(rank.int(), ranks)
    return counts, order, inverse


def ep_pack(
    x: Tensor,
    order: Tensor,
    experts: Tensor,
    weights: Tensor | None = None,
    scales: Tensor | None = None,
) -> Tensor:
    """x[T, H], order[S] int32, experts[T, k] int32 -> [S, W] int32: each row of `order` as wire.py
    has it. weights[T, k] float32 travel where they are given. `scales` [T, ceil(H / 128)] float32:
    x is float8_e4m3fn. Rows of -1 are zeros, and their experts -1.
    """
    (_, width), top_k = x.shape, experts.shape[1]
    form = wire_of(
        width, x.dtype, top_k, has_weights=weights is not None, is_fp8=scales is not None
    )
    there, at = order >= 0, order.clamp(min=0).long()
    parts = [_taken(x, at)]
    if scales is not None:
        parts.append(_taken(scales, at))
    its = _taken(experts, at)
    whole = torch.cat((*parts, torch.zeros_like(its)), dim=1)
    wire = torch.zeros((order.numel(), form.words), dtype=torch.int32, device=x.device)
    wire[:, : form.weights] = torch.where(there[:, None], whole, 0)
    wire[:, form.experts : form.weights] = torch.where(there[:, None], its, -1)
    if weights is not None:
        shares = _taken(weights, at)
        wire[:, form.weights : form.used] = torch.where(there[:, None], shares, 0)
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
    """wire[N, W] int32, of rows of rows.shape[-1] numbers; fills `rows` with those of the `count`
    experts from `first` on -> (offsets[count + 1] int32, inverse[N, k] int32).

    `rows` is [P, H], and gets the rows end to end in the order of experts, those of one in the
    order of `wire`: expert e's are offsets[e] to offsets[e + 1]. Or it is [count, C, H], and each
    expert's rows are at the head of its C. There must be room; what is left of it stays as it was.
    `inverse`: where a pair's row stands among all P, or all count * C; -1 where its expert is not
    here. Values that travelled in fp8 are multiplied by their scales; or, where `scales`
    [P or count, C, ceil(H / 128)] float32 takes those, stay so in `rows` of float8_e4m3fn.
    """
    width = rows.shape[-1]
    form = wire_of(width, rows.dtype, top_k, has_weights=False, is_fp8=is_fp8)
    experts = wire[:, form.experts : form.weights] - first
    _, offsets, inverse = sorted_pairs(experts, count)
    here = inverse >= 0
    if rows.dim() == 3:
        its = experts.clamp(0, count - 1)
        inverse = torch.where(here, its * rows.shape[1] + inverse - offsets[its.long()], -1)
    values, token = wire[:, : form.values].contiguous(), here.nonzero()[:, 0]
    place = inverse[here].long()
    if is_fp8:
        wide = wire[:, form.values : form.experts].contiguous().view(torch.float32)
        if scales is not None:
            # Why bytes: torch scatters no 8-bit floats on the CPU.
            rows.view(-1, width).view(torch.uint8)[place] = values.view(torch.uint8)[token]
            scales.view(-1, form.scales)[place] = wide[token]
            return offsets, inverse.int()
        wide = wide.repeat_interleave(GROUP, dim=1)[:, :width]
        given = (values.view(torch.float8_e4m3fn).float() * wide).to(rows.dtype)
    else:
        given = values.view(rows.dtype)
    rows.view(-1, width)[place] = given[token]
    return offsets, inverse.int()


def _taken(values: Tensor, at: Tensor) -> Tensor:
    """Rows in words; any, where there are none to take."""
    words = values.contiguous().view(torch.int32)
    return words[at] if words.shape[0] else words.new_zeros(at.numel(), words.shape[1])
