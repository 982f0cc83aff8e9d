"""Placements: the published example to the digit, and the laws that hold for every load."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.experts.loads import EXAMPLE, layouts, loads
from tokenwire.plugins.engines.cuda.policy.experts.balance import (
    balancedness,
    mean_balancedness,
    rank_loads,
)
from tokenwire.plugins.engines.cuda.policy.experts.bursty import per_step
from tokenwire.plugins.engines.cuda.policy.experts.greedy import place, replicate_by_step
from tokenwire.plugins.engines.cuda.policy.experts.patterns import patterns
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Layout,
    Placement,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.published import pack, published, replicate

Policy = Callable[[Floats, Layout], Placement]
HIERARCHICAL = Layout(12, 16, 8, nodes=2, groups=4)
GLOBAL = Layout(12, 16, 8, nodes=2, groups=3)
QUICK = settings(max_examples=60, deadline=None)


def ranks_of(placement: Placement) -> list[list[tuple[int, ...]]]:
    """What each rank of each layer holds, in any order of slots."""
    layout = placement.layout
    table = placement.physical_to_logical.reshape(-1, layout.ranks, layout.slots_per_rank)
    return [[tuple(sorted(rank)) for rank in layer] for layer in table.tolist()]


def test_the_published_example_hierarchical() -> None:
    found = published(EXAMPLE, HIERARCHICAL)
    assert found.physical_to_logical.tolist() == [
        [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
        [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
    ]
    assert found.counts.tolist() == [
        [1, 2, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1],
        [1, 2, 1, 1, 1, 2, 2, 1, 2, 1, 1, 1],
    ]
    columns = [[12], [13, 15], [11], [6], [5, 7], [0, 2], [1], [3], [4], [9], [8, 10], [14]]
    assert found.logical_to_physical[0].tolist() == [[*c, -1][:2] for c in columns]
    scores = balancedness(rank_loads(EXAMPLE, found))[0]
    np.testing.assert_allclose(scores, [0.8277, 0.8050], atol=5e-5)


def test_the_published_example_global() -> None:
    """Groups that do not divide among nodes count for nothing."""
    found = published(EXAMPLE, GLOBAL)
    assert found.physical_to_logical.tolist() == [
        [10, 6, 10, 7, 0, 2, 11, 4, 5, 9, 5, 4, 8, 3, 1, 1],
        [1, 10, 2, 4, 5, 11, 5, 0, 6, 7, 6, 3, 8, 8, 9, 7],
    ]
    scores = balancedness(rank_loads(EXAMPLE, found))[0]
    np.testing.assert_allclose(scores, [0.9323, 0.8401], atol=5e-5)


def test_greedy_by_step_on_the_example() -> None:
    """Known ranks' contents for one step, and the published balancedness."""
    owners, counts = replicate_by_step(EXAMPLE, 16)
    table = place(EXAMPLE / counts.astype(np.float32), owners, 8, by_largest=True)
    found = placement_of(GLOBAL, table)
    wanted = [
        [10, 2, 10, 6, 0, 7, 11, 4, 5, 9, 5, 4, 8, 3, 1, 1],
        [1, 3, 2, 11, 5, 0, 5, 4, 6, 7, 6, 7, 8, 8, 9, 10],
    ]
    assert ranks_of(found) == ranks_of(placement_of(GLOBAL, np.array(wanted)))
    scores = balancedness(rank_loads(EXAMPLE, found))[0]
    np.testing.assert_allclose(scores, [0.9323, 0.8401], atol=5e-5)


@QUICK
@given(data=st.data(), policy=st.sampled_from([published, per_step]))
def test_every_placement_is_whole(data: st.DataObject, policy: Policy) -> None:
    """Each expert has a replica, each rank its number of slots, counts and both maps agree."""
    layout = data.draw(layouts())
    load = data.draw(loads(layout))
    found = policy(load, layout)
    table, inverse = found.physical_to_logical, found.logical_to_physical
    assert table.shape == (load.shape[1], layout.slots)
    for layer in range(found.layers):
        slots = [[slot for slot in row if slot >= 0] for row in inverse[layer].tolist()]
        assert sorted(slot for row in slots for slot in row) == list(range(layout.slots))
        assert [len(row) for row in slots] == found.counts[layer].tolist()
        assert min(len(row) for row in slots) >= 1
        for expert, row in enumerate(slots):
            assert row == sorted(row)
            assert set(table[layer, row].tolist()) == {expert}
            assert inverse[layer, expert].tolist() == row + [-1] * (inverse.shape[2] - len(row))
    scores = balancedness(rank_loads(load, found))
    assert scores.min() > 0
    assert scores.max() <= 1
    assert policy(load, layout).equals(found)
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 0


@QUICK
@given(data=st.data())
def test_ours_is_never_less_balanced(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    load = data.draw(loads(layout))
    theirs, ours = published(load, layout), per_step(load, layout)
    assert mean_balancedness(load, ours) >= mean_balancedness(load, theirs) - 1e-6


@QUICK
@given(data=st.data(), policy=st.sampled_from([published, per_step]))
def test_groups_stay_on_one_node(data: st.DataObject, policy: Policy) -> None:
    layout = data.draw(layouts().filter(lambda each: each.is_hierarchical))
    found = policy(data.draw(loads(layout)), layout)
    groups = found.physical_to_logical // (layout.experts // layout.groups)
    by_node = groups.reshape(found.layers, layout.nodes, -1)
    for nodes in by_node.tolist():
        sets = [set(node) for node in nodes]
        assert sum(map(len, sets)) == len(set.union(*sets)) == layout.groups


def test_what_bursts_together_is_kept_apart() -> None:
    """Sums are even, so the published balance sees nothing; steps are not."""
    load = np.zeros((20, 1, 8), dtype=np.float32)
    for step in range(20):
        load[step, 0, [step % 4, step % 4 + 4]] = 10
    load += 1
    layout = Layout(8, 8, 4)
    ours = mean_balancedness(load, per_step(load, layout))
    assert mean_balancedness(load, published(load, layout)) == pytest.approx(7 / 22)
    assert ours == pytest.approx(7 / 12)


def test_a_layer_that_the_greedy_rounds_make_worse_stays_as_published() -> None:
    """One expert gets half of everything, in every step alike."""
    mean = np.full((20, 2, 8), 30.0)
    mean[:, :, 3] = 240
    load = np.random.default_rng(1).poisson(mean).astype(np.float32)
    layout = Layout(8, 16, 8)
    owners, counts = replicate_by_step(load, 16)
    for by_largest in (False, True):
        table = place(load / counts.astype(np.float32), owners, 8, by_largest=by_largest)
        greedy = mean_balancedness(load, placement_of(layout, table))
        assert greedy < mean_balancedness(load, published(load, layout)) - 0.01
    assert per_step(load, layout).equals(published(load, layout))


def test_balancedness_is_of_steps_and_not_of_their_sum() -> None:
    load = np.array([[[4.0, 0]], [[0, 4.0]]], dtype=np.float32)
    even = placement_of(Layout(2, 2, 2), np.array([[0, 1]]))
    assert mean_balancedness(load.sum(axis=0, keepdims=True), even) == 1
    assert mean_balancedness(load, even) == 0.5
    assert mean_balancedness(np.zeros((3, 1, 2), dtype=np.float32), even) == 1


@QUICK
@given(data=st.data(), bins=st.integers(1, 5), room=st.integers(1, 4))
def test_packing_is_what_it_says(data: st.DataObject, bins: int, room: int) -> None:
    """Against the rule written down plainly."""
    values = st.lists(st.integers(0, 9), min_size=bins * room, max_size=bins * room)
    weights = np.array([data.draw(values)], dtype=np.float32)
    held: list[list[int]] = [[] for _ in range(bins)]
    for item in sorted(range(bins * room), key=lambda each: -weights[0, each]):
        free = [index for index in range(bins) if len(held[index]) < room]
        at = min(free, key=lambda index: weights[0, held[index]].sum())
        held[at].append(item)
    wanted = [item for rank in held for item in rank] if room > 1 else list(range(bins))
    assert pack(weights, bins)[0].tolist() == wanted


@QUICK
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 6))
def test_replicating_is_what_it_says(values: list[int], more: int) -> None:
    counts = [1] * len(values)
    for _ in range(more):
        each = [np.float32(v) / np.float32(c) for v, c in zip(values, counts, strict=True)]
        counts[each.index(max(each))] += 1
    weights = np.array([values], dtype=np.float32)
    owners, found = replicate(weights, len(values) + more)
    assert found[0].tolist() == counts
    assert np.bincount(owners[0]).tolist() == counts


@QUICK
@given(data=st.data(), more=st.integers(0, 5))
def test_replicas_by_step_lower_the_largest(data: st.DataObject, more: int) -> None:
    """Each goes to an expert with which the sum over steps of the largest load is least."""
    load = data.draw(loads(Layout(5, 5, 1), layers=1))
    owners, counts = replicate_by_step(load, 5 + more)
    have = np.ones(5)
    for chosen in owners[0, 5:].tolist():
        costs = []
        for expert in range(5):
            tried = have.copy()
            tried[expert] += 1
            costs.append((load[:, 0] / tried).max(axis=1).sum())
        assert costs[chosen] <= min(costs) * (1 + 1e-5) + 1e-3
        have[chosen] += 1
    assert counts[0].tolist() == have.tolist()


@given(st.integers(1, 40), st.integers(1, 10))
@settings(max_examples=30, deadline=None)
def test_patterns_keep_the_sum(steps: int, most: int) -> None:
    load = np.random.default_rng(steps).poisson(3, (steps, 2, 6)).astype(np.float32)
    few = patterns(load, most)
    assert len(few) <= most or few is load
    np.testing.assert_allclose(few.sum(axis=0), load.sum(axis=0), rtol=1e-5)


def test_patterns_tell_kinds_of_steps_apart() -> None:
    kinds = np.eye(3, 8, dtype=np.float32)[[0, 2, 1, 1, 0, 2, 2, 0, 0]][:, None] * 10 + 1
    few = patterns(kinds, 3)
    found = sorted(tuple(row) for row in few[:, 0, :3].tolist())
    assert found == [(2, 22, 2), (3, 3, 33), (44, 4, 4)]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"slots": 11}, "add redundant experts"),
        ({"ranks": 5}, "evenly among ranks"),
        ({"nodes": 3}, "evenly among nodes"),
        ({"groups": 5}, "evenly among groups"),
        ({"ranks": 0}, "at least 1"),
    ],
)
def test_layouts_that_cannot_be(changes: dict[str, int], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        msgspec.structs.replace(HIERARCHICAL, **changes)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ([[0, 1, 1, 0]], "expert 2 of layer 0 has no slot"),
        ([[0, 1, 2, 3]], "wanted experts 0..2"),
        ([[0, 1, 2, -1]], "wanted experts 0..2"),
        ([[0, 1, 2]], "wanted a map"),
        ([0, 1, 2, 2], "wanted a map"),
    ],
)
def test_maps_that_cannot_be(table: list[list[int]], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        placement_of(Layout(3, 4, 2), np.array(table))


@pytest.mark.parametrize("policy", [published, per_step])
def test_loads_that_cannot_be(policy: Policy) -> None:
    for wrong in (EXAMPLE[0], EXAMPLE[:, :, :11], EXAMPLE[:0]):
        with pytest.raises(ValueError, match="wanted a load"):
            policy(wrong, GLOBAL)
    for number in (-1, np.nan, np.inf):
        load = EXAMPLE.copy()
        load[0, 0, 0] = number
        with pytest.raises(ValueError, match="counters"):
            policy(load, GLOBAL)
    with pytest.raises(ValueError, match="wanted a load"):
        rank_loads(EXAMPLE[:, :1], published(EXAMPLE, GLOBAL))
