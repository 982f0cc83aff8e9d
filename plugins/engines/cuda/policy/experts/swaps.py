"""Swaps of two replicas between ranks while that lowers the sum over steps of the largest rank
load. Knows no time limit but the rounds it is given."""

from __future__ import annotations

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import Floats, Ints

__all__ = ("PARTNERS", "improve")

LEAST_GAIN = 1e-6
"""Of the load: what is less is rounding."""
PARTNERS = 8
"""Ranks that a swap is tried with: those least loaded when the hot one is."""


def improve(each: Floats, slots: Ints, ranks: int, *, rounds: int) -> Ints:
    """`slots` [rows, slots] (experts, rank after rank) after at most `rounds` swaps a row, the best
    first, each with the rank that is the largest most; `each` [steps, rows, experts] a replica."""
    steps, rows, _ = each.shape
    total = slots.shape[1]
    room = total // ranks
    if ranks < 2 or rounds < 1:
        return slots
    found = slots.copy()
    wide = np.broadcast_to(slots, (steps, rows, total))
    items = np.take_along_axis(each, wide, axis=2).transpose(1, 2, 0).copy()
    active = np.arange(rows)
    for _ in range(rounds):
        here = items[active]
        hot, mine, other, gain = _best_swap(here, ranks)
        worth = gain > LEAST_GAIN * here.sum(axis=(1, 2))
        active, hot, mine, other = active[worth], hot[worth], mine[worth], other[worth]
        if not len(active):
            break
        own = hot * room + mine
        for table in (items, found):
            kept = table[active, own].copy()
            table[active, own] = table[active, other]
            table[active, other] = kept
    return found


def _best_swap(items: Floats, ranks: int) -> tuple[Ints, Ints, Ints, Floats]:
    """Of `items` [rows, slots, steps]: (hot rank, its slot within the rank, other slot, gain)."""
    rows, slots, steps = items.shape
    room, row = slots // ranks, np.arange(rows)
    by_rank = items.reshape(rows, ranks, room, steps)
    loads = by_rank.sum(axis=2)
    hot = _hottest(loads)
    loads_hot = loads[row, hot]
    partners = _partners(loads, hot)
    cold = loads[row[:, None], partners][:, :, None]
    most, rest = _largest_of_others(loads, hot, partners)
    offered = by_rank[row[:, None], partners]
    wide = loads_hot[:, None, None]
    best_cost = np.full(rows, np.inf, dtype=np.float32)
    best_mine, best_other = np.zeros((2, rows), dtype=np.int64)
    for mine in range(room):
        change = offered - by_rank[row, hot, mine][:, None, None]
        after = np.maximum(wide + change, cold - change)
        np.maximum(after, rest[:, :, None], out=after)
        cost = after.sum(axis=3).reshape(rows, -1)
        cheapest = cost.argmin(axis=1)
        found = cost[row, cheapest]
        better = found < best_cost
        best_cost = np.where(better, found, best_cost)
        best_mine[better] = mine
        best_other[better] = cheapest[better]
    which, slot = np.divmod(best_other, room)
    gain = np.maximum(loads_hot, most).sum(axis=1) - best_cost
    return hot, best_mine, partners[row, which] * room + slot, gain


def _partners(loads: Floats, hot: Ints) -> Ints:
    """[rows, few] of `loads` [rows, ranks, steps]: ranks whose loads meet the hot one's least."""
    row, ranks = np.arange(len(hot)), loads.shape[1]
    meet = np.matmul(loads, loads[row, hot][:, :, None])[:, :, 0]
    meet[row, hot] = np.inf
    few = min(PARTNERS, ranks - 1)
    if few == ranks - 1:
        return np.argsort(meet, axis=1)[:, :few]
    return np.argpartition(meet, few, axis=1)[:, :few]


def _largest_of_others(loads: Floats, hot: Ints, partners: Ints) -> tuple[Floats, Floats]:
    """([rows, steps] without the hot rank, [rows, partners, steps] without that partner too)."""
    others = loads.copy()
    others[np.arange(len(hot)), hot] = -1
    first = others.argmax(axis=1)[:, None]
    most = np.take_along_axis(others, first, axis=1)
    np.put_along_axis(others, first, -1, axis=1)
    second = others.max(axis=1)[:, None]
    return most[:, 0], np.where(first == partners[:, :, None], second, most)


def _hottest(loads: Floats) -> Ints:
    """The rank [rows] without which the steps' largest loads would fall most; ties: the one that
    leads by the largest loads."""
    rows, ranks, _ = loads.shape
    leader = loads.argmax(axis=1)
    top = loads.max(axis=1)
    others = loads.copy()
    np.put_along_axis(others, leader[:, None], -1, axis=1)
    weight = (top - others.max(axis=1)) + top * LEAST_GAIN
    where = np.arange(rows)[:, None] * ranks + leader
    lead = np.bincount(where.ravel(), weight.ravel(), minlength=rows * ranks)
    hottest: Ints = lead.reshape(rows, ranks).argmax(axis=1)
    return hottest
