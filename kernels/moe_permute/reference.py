"""Rows put into the order of their experts, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("moe_permute", "sorted_pairs")


def moe_permute(x: Tensor, experts: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """x[T, H] and experts[T, k] int32 -> (rows[T k, H], offsets[count + 1] int32,
    inverse[T, k] int32).

    The rows of expert e are rows[offsets[e] : offsets[e + 1]], in the order of the tokens; so its
    count is the difference. Token t's j-th row is rows[inverse[t, j]]. A pair whose expert is not
    in [0, count) has no row: its inverse is -1, and as many rows at the end are zeros.
    """
    tokens, top_k = experts.shape
    order, offsets, inverse = sorted_pairs(experts, count)
    rows = x[order // top_k]
    there = torch.arange(tokens * top_k, device=x.device) < offsets[-1]
    return rows.masked_fill(~there[:, None], 0.0), offsets, inverse


def sorted_pairs(experts: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """experts[T, k] -> (order[T k] int64: which pair stands there, offsets, inverse)."""
    flat = experts.flatten().long()
    known = (flat >= 0) & (flat < count)
    key = torch.where(known, flat, count)
    order = key.argsort(stable=True)
    counts = (key[:, None] == torch.arange(count, device=key.device)).sum(0)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0))).int()
    places = torch.empty_like(order)
    places.scatter_(0, order, torch.arange(order.numel(), device=key.device))
    inverse = torch.where(known, places, -1).int().view(experts.shape)
    return order, offsets, inverse
