"""Replica choice: of the expert asked for, the same every time, all of them in the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.experts.loads import layouts, placements
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Layout,
    Placement,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.replicas import by_position, nearest, spread

QUICK = settings(max_examples=60, deadline=None)


@pytest.fixture
def placement() -> Placement:
    """Expert 0 has 4 replicas, 1 has 3, 2 has 1; two ranks a node, two slots a rank."""
    layout = Layout(3, 8, 4, nodes=2)
    return placement_of(layout, np.array([[0, 1, 0, 2, 0, 1, 0, 1]]))


@QUICK
@given(data=st.data())
def test_nearest_is_nearest(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    made = data.draw(placements(layout, 2))
    for source in range(layout.ranks):
        chosen = nearest(made, source)
        owners = np.take_along_axis(made.physical_to_logical, chosen, axis=1)
        assert (owners == np.arange(layout.experts)).all()
        for layer, row in enumerate(chosen.tolist()):
            for expert, slot in enumerate(row):
                slots = made.logical_to_physical[layer, expert]
                distances = [
                    distance(layout, source, s // layout.slots_per_rank)
                    for s in slots[slots >= 0].tolist()
                ]
                assert distance(layout, source, slot // layout.slots_per_rank) == min(distances)
        assert (nearest(made, source) == chosen).all()


def distance(layout: Layout, source: int, target: int) -> int:
    same_node = source // layout.ranks_per_node == target // layout.ranks_per_node
    return 0 if source == target else 1 if same_node else 2


def test_equally_far_sources_share_replicas_evenly() -> None:
    """Eight ranks on a node of their own each; expert 0 has a replica on ranks 0 and 1."""
    layout = Layout(7, 8, 8, nodes=8)
    made = placement_of(layout, np.array([[0, 0, 1, 2, 3, 4, 5, 6]]))
    chosen = [int(nearest(made, source)[0, 0]) for source in range(2, 8)]
    assert sorted(chosen) == [0, 0, 0, 1, 1, 1]


def test_spread_covers_replicas_evenly(placement: Placement) -> None:
    experts = np.tile([0, 1], (6000, 1))
    chosen = spread(placement, 0, experts, step=3)
    assert (placement.physical_to_logical[0, chosen] == experts).all()
    for column, replicas in ((0, 4), (1, 3)):
        found = np.unique(chosen[:, column], return_counts=True)[1]
        assert len(found) == replicas
        assert abs(found / (6000 / replicas) - 1).max() < 0.1
    assert (chosen == spread(placement, 0, experts, step=3)).all()
    assert (chosen != spread(placement, 0, experts, step=4)).any()


@QUICK
@given(data=st.data())
def test_by_position_sees_nothing_but_position(data: st.DataObject) -> None:
    """A token keeps its replicas whatever shares its batch, and wherever it is in it."""
    layout = Layout(3, 8, 4, nodes=2)
    made = placement_of(layout, np.array([[0, 1, 0, 2, 0, 1, 0, 1]]))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 2)), min_size=1))
    positions, experts = np.array(rows).T
    together = by_position(made, 0, experts[:, None], positions)
    assert (made.physical_to_logical[0, together] == experts[:, None]).all()
    for index, (position, expert) in enumerate(rows):
        alone = by_position(made, 0, np.array([[expert]]), np.array([position]))
        assert alone[0, 0] == together[index, 0]


def test_by_position_covers_replicas_evenly(placement: Placement) -> None:
    experts, positions = np.tile([0, 1], (6000, 1)), np.arange(6000)
    chosen = by_position(placement, 0, experts, positions)
    for column, replicas in ((0, 4), (1, 3)):
        found = np.unique(chosen[:, column], return_counts=True)[1]
        assert len(found) == replicas
        assert abs(found / (6000 / replicas) - 1).max() < 0.1


def test_a_rank_that_is_not_there(placement: Placement) -> None:
    for rank in (-1, 4):
        with pytest.raises(ValueError, match=r"wanted a rank 0\.\.3"):
            nearest(placement, rank)
