"""A new placement rearranged so that less of the old one has to move. Knows no move.

Ranks are alike, and so are the slots of a rank: which rank takes which set of experts, and in which
order, changes no balance. So a set goes to a rank that holds much of it, and what a rank held
already stays in its slot."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Ints,
    Placement,
    check_alike,
    placement_of,
)

__all__ = ("settled",)


def settled(old: Placement, new: Placement) -> Placement:
    """`new` with each layer's sets of experts on the ranks that hold most of them, greedily, within
    the node where the layout is hierarchical; then in the slots where the old ones are."""
    check_alike(old, new)
    layout = new.layout
    room = layout.slots_per_rank
    span = layout.ranks_per_node if layout.is_hierarchical else layout.ranks
    before = old.physical_to_logical.reshape(-1, span, room)
    after = new.physical_to_logical.reshape(-1, span, room)
    found = np.empty_like(after)
    for part, (had, wanted) in enumerate(zip(before, after, strict=True)):
        sets = wanted[_matched(had, wanted, layout.experts)]
        for rank in range(span):
            found[part, rank] = _ordered(had[rank].tolist(), sets[rank].tolist())
    return placement_of(layout, found.reshape(new.physical_to_logical.shape))


def _matched(had: Ints, wanted: Ints, experts: int) -> list[int]:
    """For each rank the index of the set that it takes: largest overlap first; where that is equal
    the set that is its own, then the lowest."""
    ranks = len(had)
    held = np.zeros((2, ranks, experts), dtype=np.float32)
    rows = np.arange(ranks)[:, None]
    np.add.at(held[0], (rows, had), np.float32(1))
    np.add.at(held[1], (rows, wanted), np.float32(1))
    overlap = 2 * (held[0] @ held[1].T)
    overlap += np.eye(ranks, dtype=np.float32) * (overlap > 0)
    pairs = np.argsort(-overlap, axis=None, kind="stable")[: np.count_nonzero(overlap)]
    taken: dict[int, int] = {}
    free = dict.fromkeys(range(ranks))
    for pair in pairs.tolist():
        rank, index = divmod(pair, ranks)
        if rank not in taken and index in free:
            taken[rank] = index
            del free[index]
    rest = iter(list(free))
    return [taken[rank] if rank in taken else next(rest) for rank in range(ranks)]


def _ordered(before: list[int], after: list[int]) -> list[int]:
    """`after` with what both hold where `before` has it."""
    left = Counter(after)
    kept: list[int | None] = []
    for expert in before:
        stays = left[expert] > 0
        left[expert] -= stays
        kept.append(expert if stays else None)
    rest = iter(list(left.elements()))
    return [next(rest) if expert is None else expert for expert in kept]
