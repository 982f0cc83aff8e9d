"""Which replica of an expert a token goes to. Knows no load: the placement has evened that.

`nearest` is fixed by where a token comes from, and costs least traffic. `spread` deals a batch's
rows out anew each step, and evens the replicas best. `by_position` looks at the token's position
alone: the same request takes the same replicas, and so the same sums, whatever shares its batch.
All are pure: same arguments, same choice, on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokenwire.plugins.engines.cuda.policy.experts.placement import Ints, Placement

__all__ = ("by_position", "nearest", "spread")

Words = NDArray[np.uint64]
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
STRIDE = np.uint64(0x9E3779B97F4A7C15)
SAME_RANK, SAME_NODE, ELSEWHERE, ABSENT = range(4)


def _mixed(*keys: Ints | int) -> Words:
    """A hash of keys, broadcast: the finaliser of SplitMix64 after each."""
    state: Words = np.zeros(1, dtype=np.uint64)
    for key in keys:
        state = state + STRIDE + np.asarray(key, dtype=np.int64).astype(np.uint64)
        state = (state ^ (state >> np.uint64(30))) * FIRST
        state = (state ^ (state >> np.uint64(27))) * SECOND
        state = state ^ (state >> np.uint64(31))
    return state


def nearest(placement: Placement, source_rank: int) -> Ints:
    """Slots [layers, experts] for tokens that `source_rank` routes: of its own rank, else of its
    node, else of any; sources that are equally far from the same replicas take them in turn, from
    a first one that differs by layer and expert."""
    layout = placement.layout
    if not 0 <= source_rank < layout.ranks:
        raise ValueError(f"wanted a rank 0..{layout.ranks - 1}, got {source_rank}")
    slots = placement.logical_to_physical
    ranks = slots // layout.slots_per_rank
    node = source_rank // layout.ranks_per_node
    is_near = ranks // layout.ranks_per_node == node
    distance = np.where(is_near, SAME_NODE, ELSEWHERE)
    distance = np.where(ranks == source_rank, SAME_RANK, distance)
    distance = np.where(slots < 0, ABSENT, distance)
    equal = distance == distance.min(axis=2, keepdims=True)
    layers, experts, _ = slots.shape
    first = _mixed(np.arange(layers)[:, None], np.arange(experts))
    turn = first % np.uint64(layout.ranks) + np.uint64(source_rank)
    pick = turn.astype(np.int64) % equal.sum(axis=2)
    column = (equal & (equal.cumsum(axis=2) == pick[:, :, None] + 1)).argmax(axis=2)
    return np.take_along_axis(slots, column[:, :, None], axis=2)[:, :, 0]


def spread(placement: Placement, layer: int, experts: Ints, step: int) -> Ints:
    """Slots [rows, chosen] of the logical `experts` [rows, chosen] of a batch's rows, uniform over
    replicas and different each step."""
    return _chosen(placement, layer, experts, _mixed(np.arange(len(experts)), step))


def by_position(placement: Placement, layer: int, experts: Ints, positions: Ints) -> Ints:
    """Slots [rows, chosen] of the logical `experts` [rows, chosen] of tokens at `positions` [rows]
    of their sequences."""
    return _chosen(placement, layer, experts, _mixed(positions))


def _chosen(placement: Placement, layer: int, experts: Ints, keys: Words) -> Ints:
    table, counts = placement.logical_to_physical[layer], placement.counts[layer]
    words = _mixed(keys.view(np.int64)[:, None], experts)
    slots: Ints = table[experts, (words % counts[experts].astype(np.uint64)).astype(np.int64)]
    return slots
