"""Replicas chosen on the device are the policy's, and every token is counted once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from tokenwire.plugins.engines.cuda.balance.table import Counter, ExpertTable  # noqa: E402
from tokenwire.plugins.engines.cuda.policy.experts.placement import (  # noqa: E402
    Layout,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.replicas import (  # noqa: E402
    by_position,
    nearest,
    spread,
)

pytestmark = pytest.mark.torch


@st.composite
def placements(draw):
    ranks, room, layers = draw(st.sampled_from([(1, 6, 2), (2, 4, 1), (4, 3, 3)]))
    slots = ranks * room
    experts = draw(st.integers(2, slots))
    rest = st.integers(0, experts - 1)
    table = [
        draw(
            st.permutations(
                [
                    *range(experts),
                    *draw(st.lists(rest, min_size=slots - experts, max_size=slots - experts)),
                ]
            )
        )
        for _ in range(layers)
    ]
    return placement_of(Layout(experts, slots, ranks), np.array(table))


@settings(max_examples=40)
@given(placements(), st.integers(0, 2**32), st.sampled_from(["nearest", "spread", "position"]))
def test_choices_are_the_policys(placement, seed, how) -> None:
    rng = np.random.default_rng(seed)
    layout, layers = placement.layout, placement.layers
    layer, rank = int(rng.integers(layers)), int(rng.integers(layout.ranks))
    counter = Counter(layers, layout.slots, 3, torch.device("cpu"))
    table = ExpertTable(placement, layer, rank, counter.now[layer], replicas=how)
    total = np.zeros(layout.slots, np.int64)
    for step in range(3):
        tokens = int(rng.integers(0, 9))
        experts = rng.integers(-1, layout.experts, (tokens, 2))
        positions = rng.integers(0, 1 << 20, tokens)
        known = np.maximum(experts, 0)
        if how == "nearest":
            wanted = nearest(placement, rank)[layer][known]
        elif how == "spread":
            wanted = spread(placement, layer, known, step)
        else:
            wanted = by_position(placement, layer, known, positions)
        wanted = np.where(experts < 0, -1, wanted)
        found = table.physical(torch.from_numpy(experts).int(), torch.from_numpy(positions)).numpy()
        assert found.tolist() == wanted.tolist()
        total += np.bincount(wanted[wanted >= 0], minlength=layout.slots)
        counter.push()
    counts, event = counter.take()
    assert event is None
    assert counts.sum(0)[layer].tolist() == total.tolist()
    assert not counter.now.any()


def test_a_table_that_changed_is_the_new_one() -> None:
    layout = Layout(3, 4, 2)
    first = placement_of(layout, np.array([[0, 1, 2, 0]]))
    second = placement_of(layout, np.array([[2, 1, 1, 0]]))
    counted = torch.zeros(5, dtype=torch.int32)
    table = ExpertTable(first, 0, 1, counted, replicas="nearest")
    places = table._places
    table.put(second)
    assert table._places is places, "a CUDA graph would see the old one"
    found = table.physical(torch.tensor([[0], [1], [2]], dtype=torch.int32), torch.arange(3))
    assert found[:, 0].tolist() == nearest(second, 1)[0].tolist()


def test_more_steps_than_there_is_room_for_are_an_error() -> None:
    counter = Counter(1, 2, 1, torch.device("cpu"))
    counter.push()
    with pytest.raises(RuntimeError, match="at most 1 steps"):
        counter.push()
