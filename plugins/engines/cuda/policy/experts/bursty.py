"""Expert balance for loads that burst: it looks at each step, not at their sum.

Strategy: candidates, and each layer takes the most balanced one on the steps themselves. The
published placement is one of them, so the result is never less balanced than it on the window that
was given; what comes after the window may differ from it. Others come from greedy rounds and swaps
on a few patterns of steps, as many as the size of the problem leaves time for."""

from __future__ import annotations

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.balance import balancedness, rank_loads_of
from tokenwire.plugins.engines.cuda.policy.experts.greedy import place, replicate_by_step
from tokenwire.plugins.engines.cuda.policy.experts.patterns import patterns
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Layout,
    Placement,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.published import by_nodes, checked, published_map
from tokenwire.plugins.engines.cuda.policy.experts.swaps import PARTNERS, improve

__all__ = ("best_of", "per_step")

FEWEST_PATTERNS, MOST_PATTERNS = 8, 128
WORK = 5_000_000
"""Array elements that all rounds of placement may touch: so many patterns are looked at."""
SWAP_WORK = 300_000
"""Array elements that all rounds of swaps may touch: so many rounds are made."""
MOST_SWAPS = 64


def per_step(load: Floats, layout: Layout) -> Placement:
    """Of `load` [steps, layers, experts], tokens that each step sent to each expert; hierarchical
    where the layout is. Deterministic."""
    steps = checked(load, layout)
    _, layers, _ = steps.shape
    round_size = layers * layout.slots * layout.ranks
    few = patterns(steps, max(FEWEST_PATTERNS, min(MOST_PATTERNS, WORK // round_size)))
    is_small = len(few) * round_size <= WORK
    maps = [published_map(steps, layout)]
    for by_largest in (False, True) if is_small else (False,):

        def fill(part: Floats, slots: int, ranks: int, largest: bool = by_largest) -> Ints:
            return _fill(part, slots, ranks, by_largest=largest)

        if layout.is_hierarchical:
            maps.append(by_nodes(few, layout, _pack_groups, fill))
        else:
            maps.append(fill(few, layout.slots, layout.ranks))
    return placement_of(layout, best_of(steps, layout, maps))


def best_of(load: Floats, layout: Layout, maps: list[Ints]) -> Ints:
    """Of each layer the map [layers, slots] that is most balanced on `load`; the first on ties."""
    loads = rank_loads_of(load, layout, maps)
    scores = [balancedness(each).mean(axis=0) for each in loads]
    best: Ints = np.argmax(scores, axis=0)
    chosen: Ints = np.stack(maps)[best, np.arange(len(best))]
    return chosen


def _pack_groups(load: Floats, nodes: int) -> Ints:
    groups = load.shape[2]
    owners = np.tile(np.arange(groups), (load.shape[1], 1))
    return improve(load, place(load, owners, nodes, by_largest=True), nodes, rounds=MOST_SWAPS)


def _fill(load: Floats, slots: int, ranks: int, *, by_largest: bool) -> Ints:
    steps, rows, _ = load.shape
    owners, counts = replicate_by_step(load, slots)
    each: Floats = np.divide(load, counts, dtype=np.float32)
    placed = place(each, owners, ranks, by_largest=by_largest)
    room = slots // ranks
    swap_size = steps * rows * room * room * min(PARTNERS, ranks)
    return improve(each, placed, ranks, rounds=min(MOST_SWAPS, SWAP_WORK // swap_size))
