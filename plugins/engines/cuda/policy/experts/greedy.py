"""Replicas and their ranks one after the other, looking at each step and not at the sum.

Loads are [steps, rows, experts]; a row is a layer, or a layer's part on one node, and every round
works on all rows at once. Knows no time limit and no measure of the result."""

from __future__ import annotations

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import Floats, Ints

__all__ = ("place", "replicate_by_step")

TIE = np.float32(1e-6)


class _Leaders:
    """The two most loaded experts (by load a replica) of each row and step, [rows * steps]."""

    def __init__(self, each: Floats) -> None:
        lines = len(each)
        self._each = each
        self.first, self.second = np.empty((2, lines), dtype=np.int64)
        self.top, self.next = np.empty((2, lines), dtype=np.float32)
        self.refresh(np.arange(lines))

    def refresh(self, lines: Ints) -> None:
        here, at = self._each[lines], np.arange(len(lines))
        self.first[lines] = first = here.argmax(axis=1)
        self.top[lines] = here[at, first]
        here[at, first] = -1
        self.second[lines] = second = here.argmax(axis=1)
        self.next[lines] = here[at, second]


def replicate_by_step(load: Floats, slots: int) -> tuple[Ints, Ints]:
    """(the expert of each replica [rows, slots], counts [rows, experts]): one each, then one more
    for whoever lowers the sum over steps of the largest load a replica most; where nobody does, the
    largest total a replica."""
    steps, rows, experts = load.shape
    by_row = np.ascontiguousarray(load.transpose(1, 0, 2))
    each = by_row.copy()
    leaders = _Leaders(each.reshape(rows * steps, experts))
    counts = np.ones((rows, experts), dtype=np.int64)
    owners = np.tile(np.arange(slots) % experts, (rows, 1))
    row, row_of_line = np.arange(rows), np.repeat(np.arange(rows), steps)
    totals = load.sum(axis=0) * TIE
    shares = totals.copy()
    for index in range(experts, slots):
        have = counts[row_of_line, leaders.first]
        lowered = np.maximum(leaders.next, leaders.top * (have / (have + 1)))
        where = row_of_line * experts + leaders.first
        gains = np.bincount(where, leaders.top - lowered, minlength=rows * experts)
        chosen = (gains.reshape(rows, experts) + shares).argmax(axis=1)
        owners[:, index] = chosen
        counts[row, chosen] += 1
        replicas = counts[row, chosen].astype(np.float32)
        shares[row, chosen] = totals[row, chosen] / replicas
        each[row, :, chosen] = by_row[row, :, chosen] / replicas[:, None]
        of_line = chosen[row_of_line]
        leaders.refresh(np.flatnonzero((leaders.first == of_line) | (leaders.second == of_line)))
    return owners, counts


def place(each: Floats, owners: Ints, ranks: int, *, by_largest: bool) -> Ints:
    """Experts [rows, slots], rank after rank, of `owners` [rows, slots] with the loads `each`
    [steps, rows, experts] a replica: largest total first, each to a rank with room.

    `by_largest`: the rank for which the sum over steps of the largest rank load stays least, which
    is exact for steps as they are. Else the one whose loads its own meet least (the inner product
    over steps, so that the sum of squares stays least): it evens all ranks and not the largest
    alone, which holds better where steps are patterns of many. Lowest rank on ties."""
    steps, rows, _ = each.shape
    slots = owners.shape[1]
    room = slots // ranks
    totals = np.take_along_axis(each.sum(axis=0), owners, axis=1)
    order = np.take_along_axis(owners, np.argsort(-totals, axis=1, kind="stable"), axis=1)
    wanted = np.take_along_axis(each, np.broadcast_to(order, (steps, rows, slots)), axis=2)
    items = np.ascontiguousarray(wanted.transpose(2, 0, 1))
    loads = np.zeros((steps, rows, ranks), dtype=np.float32)
    flat = loads.reshape(steps, rows * ranks)
    most = np.zeros((steps, rows), dtype=np.float32)
    held = np.zeros(rows * ranks, dtype=np.int64)
    full = np.zeros((rows, ranks), dtype=np.float32)
    by_row, after = loads.transpose(1, 0, 2), np.empty_like(loads)
    first, at_slots = np.arange(rows) * ranks, np.empty((slots, rows), dtype=np.int64)
    for index, item in enumerate(items):
        if by_largest:
            np.add(loads, item[:, :, None], out=after)
            np.maximum(after, most[:, :, None], out=after)
            cost = after.sum(axis=0)
        else:
            cost = np.matmul(item.T[:, None], by_row)[:, 0]
        cost += full
        at = cost.argmin(axis=1) + first
        have = held[at]
        at_slots[index] = at * room + have
        held[at] = have + 1
        full.reshape(-1)[at[have + 1 == room]] = np.inf
        grown = flat.take(at, axis=1)
        grown += item
        flat[:, at] = grown
        np.maximum(most, grown, out=most)
    placed = np.empty(rows * slots, dtype=np.int64)
    placed[at_slots.T.ravel()] = order.ravel()
    return placed.reshape(rows, slots)
