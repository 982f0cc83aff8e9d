"""Swaps only ever lower the sum over steps of the largest rank load, and find the best one."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.plugins.engines.cuda.policy.experts.placement import Floats, Ints
from tokenwire.plugins.engines.cuda.policy.experts.swaps import improve

QUICK = settings(max_examples=60, deadline=None)


def cost(each: Floats, slots: Ints, ranks: int) -> float:
    """Of one row: `each` [steps, experts], `slots` [slots]."""
    return float(each[:, slots].reshape(len(each), ranks, -1).sum(axis=2).max(axis=1).sum())


@QUICK
@given(data=st.data(), ranks=st.integers(1, 12), room=st.integers(1, 3), rounds=st.integers(0, 4))
def test_they_lower_the_cost(data: st.DataObject, ranks: int, room: int, rounds: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    experts, rows, steps = ranks * room, 3, data.draw(st.integers(1, 6))
    each = rng.integers(0, 20, (steps, rows, experts)).astype(np.float32)
    slots = np.tile(np.arange(experts), (rows, 1))
    found = improve(each, slots, ranks, rounds=rounds)
    assert (np.sort(found, axis=1) == slots).all()
    for row in range(rows):
        before, after = (
            cost(each[:, row], each_slots[row], ranks) for each_slots in (slots, found)
        )
        changed = (found[row] != slots[row]).any()
        assert after < before if changed else after == before


@QUICK
@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(2, 5), room=st.integers(1, 3))
def test_one_step_ends_where_no_swap_with_the_largest_helps(
    seed: int, ranks: int, room: int
) -> None:
    """With one step the hot rank is the largest, and no swap of others can lower it."""
    rng = np.random.default_rng(seed)
    each = rng.integers(0, 30, (1, 1, ranks * room)).astype(np.float32)
    start = np.arange(ranks * room)[None]
    (found,) = improve(each, start, ranks, rounds=1000)
    least = cost(each[:, 0], found, ranks)
    for one, other in itertools.combinations(range(ranks * room), 2):
        tried = found.copy()
        tried[[one, other]] = tried[[other, one]]
        assert cost(each[:, 0], tried, ranks) >= least


def test_what_bursts_together_is_swapped_apart() -> None:
    each = np.zeros((2, 1, 4), dtype=np.float32)
    each[0, 0, [0, 1]] = each[1, 0, [2, 3]] = 1
    (found,) = improve(each, np.array([[0, 1, 2, 3]]), 2, rounds=1)
    assert cost(each[:, 0], found, 2) == 2
