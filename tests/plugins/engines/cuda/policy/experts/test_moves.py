"""From one placement to another: applied step by step, the old becomes the new, and nothing is read
that was overwritten, however far ranks are apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.experts.loads import layouts, placements
from tokenwire.plugins.engines.cuda.policy.experts.moves import (
    Move,
    Stage,
    layer_moves,
    stages,
)
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Layout,
    Placement,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.rollout import Rollout
from tokenwire.plugins.engines.cuda.policy.experts.settle import settled

QUICK = settings(max_examples=80, deadline=None)


def pair(data: st.DataObject) -> tuple[Placement, Placement]:
    layout = data.draw(layouts())
    layers = data.draw(st.integers(1, 4))
    return data.draw(placements(layout, layers)), data.draw(placements(layout, layers))


def placement(layout: Layout, *rows: list[int]) -> Placement:
    return placement_of(layout, np.array(rows))


class Ranks:
    """Weights as tables of experts. A slot that was written belongs to the new placement."""

    def __init__(self, old: Placement, new: Placement) -> None:
        self.weights = old.physical_to_logical.copy()
        self._new = new
        self._switched: set[int] = set()
        self._staged: dict[tuple[int, int], int] = {}

    def read(self, move: Move) -> None:
        assert move.layer not in self._switched, "reads a layer that has been overwritten"
        held = int(self.weights[move.layer, move.source])
        assert held == move.expert
        assert (move.layer, move.target) not in self._staged, "fetched twice"
        self._staged[move.layer, move.target] = held

    def switch(self, stage: Stage) -> None:
        for move in stage.copies:
            assert move.layer in stage.layers
            self.read(move)
        for layer in stage.layers:
            for at in [key for key in self._staged if key[0] == layer]:
                self.weights[at] = self._staged.pop(at)
            self._switched.add(layer)
            assert (self.weights[layer] == self._new.physical_to_logical[layer]).all()

    @property
    def staged(self) -> int:
        """The most that a rank has in its staging memory."""
        room = self._new.layout.slots_per_rank
        return max(Counter(slot // room for _, slot in self._staged).values(), default=0)


@QUICK
@given(data=st.data(), bound=st.integers(1, 5), is_settled=st.booleans())
def test_applied_to_the_old_they_give_the_new(
    data: st.DataObject, bound: int, is_settled: bool
) -> None:
    old, new = pair(data)
    if is_settled:
        new = settled(old, new)
    ranks = Ranks(old, new)
    for stage in stages(old, new, bytes_per_expert=10, bytes_per_step=10 * bound + 9):
        assert stage.fetches or stage.layers
        assert not any(move.is_local for move in stage.fetches)
        assert all(move.is_local for move in stage.copies)
        sent = Counter(move.source_rank for move in stage.fetches)
        received = Counter(move.target_rank for move in stage.fetches)
        assert max([*sent.values(), *received.values()], default=0) <= bound
        for move in stage.fetches:
            ranks.read(move)
        assert ranks.staged <= new.layout.slots_per_rank + bound
        ranks.switch(stage)
    assert (ranks.weights == new.physical_to_logical).all()


@QUICK
@given(data=st.data())
def test_settling_keeps_the_sets_and_saves_moves(data: st.DataObject) -> None:
    """The same sets of experts, on the same node where that matters; what a rank held already stays
    in its slot."""
    old, new = pair(data)
    layout = new.layout
    found = settled(old, new)
    room, ranks = layout.slots_per_rank, layout.ranks
    span = layout.ranks_per_node if layout.is_hierarchical else ranks
    before, wanted, after = (
        each.physical_to_logical.reshape(-1, span, room).tolist() for each in (old, new, found)
    )
    for had, sets, got in zip(before, wanted, after, strict=True):
        assert sorted(map(sorted, sets)) == sorted(map(sorted, got))
        for one, other in zip(had, got, strict=True):
            stays = sum(mine == theirs for mine, theirs in zip(one, other, strict=True))
            assert stays == (Counter(one) & Counter(other)).total()
    assert settled(old, old).equals(old)
    assert list(stages(old, old, bytes_per_expert=1, bytes_per_step=1)) == []


def test_settling_finds_the_rank_that_has_most() -> None:
    """Rank 2 has all of the first set; the two others are as near to one rank as to the other."""
    layout = Layout(6, 6, 3)
    old = placement(layout, [0, 1, 2, 3, 4, 5])
    new = placement(layout, [5, 4, 3, 0, 2, 1])
    assert settled(old, new).physical_to_logical.tolist() == [[2, 1, 0, 3, 4, 5]]


@QUICK
@given(data=st.data())
def test_senders(data: st.DataObject) -> None:
    """The own rank first, then the own node, then one sender for each target node."""
    old, new = pair(data)
    layout = new.layout
    for layer in range(new.layers):
        far: dict[tuple[int, int], set[int]] = {}
        for move in layer_moves(old, new, layer):
            slots = old.logical_to_physical[layer, move.expert]
            holders = set((slots[slots >= 0] // layout.slots_per_rank).tolist())
            node = move.target_rank // layout.ranks_per_node
            near = {rank for rank in holders if rank // layout.ranks_per_node == node}
            if move.target_rank in holders:
                assert move.is_local
            elif near:
                assert move.source_rank in near
            else:
                assert move.source_rank in holders
                far.setdefault((move.expert, node), set()).add(move.source)
        assert all(len(sources) == 1 for sources in far.values())


def test_holders_take_turns() -> None:
    """Expert 0 has two replicas on node 0, and goes to nodes 1 and 2, twice to the latter."""
    layout = Layout(4, 6, 6, nodes=3)
    old = placement(layout, [0, 0, 1, 2, 3, 3])
    new = placement(layout, [1, 2, 0, 3, 0, 0])
    sources = {move.target: move.source for move in layer_moves(old, new, 0) if move.expert == 0}
    assert sources == {2: 0, 4: 1, 5: 1}


def test_copies_within_a_rank_may_cross() -> None:
    layout = Layout(3, 3, 1)
    old, new = placement(layout, [0, 1, 2]), placement(layout, [1, 2, 0])
    (stage,) = stages(old, new, bytes_per_expert=1, bytes_per_step=1)
    assert stage.fetches == ()
    ranks = Ranks(old, new)
    ranks.switch(stage)
    assert ranks.weights.tolist() == [[1, 2, 0]]


def test_a_bound_spreads_one_layer_over_steps() -> None:
    layout = Layout(4, 4, 2)
    old, new = placement(layout, [0, 1, 2, 3]), placement(layout, [2, 3, 0, 1])
    found = list(stages(old, new, bytes_per_expert=10, bytes_per_step=19))
    assert [stage.layers for stage in found] == [(), (0,)]
    assert [len(stage.fetches) for stage in found] == [2, 2]
    (all_at_once,) = stages(old, new, bytes_per_expert=10, bytes_per_step=20)
    assert len(all_at_once.fetches) == 4


@QUICK
@given(data=st.data())
def test_ranks_switch_together_however_far_apart(data: st.DataObject) -> None:
    """Ranks finish in any order; a layer switches on all at one boundary, after all have it."""
    old, new = pair(data)
    plan = list(stages(old, new, bytes_per_expert=1, bytes_per_step=data.draw(st.integers(1, 3))))
    ranks = [Rollout(plan) for _ in range(new.layout.ranks)]
    model = Ranks(old, new)
    while not all(rank.is_done for rank in ranks):
        boundary = data.draw(st.booleans())
        ready = [index for index, rank in enumerate(ranks) if rank.can_start()]
        if ready and not boundary:
            index = data.draw(st.sampled_from(ready))
            for move in ranks[index].start().fetches:
                if move.target_rank == index:
                    model.read(move)
            ranks[index].finish()
            continue
        least = min(rank.staged for rank in ranks)
        switched = {rank.commit(least) for rank in ranks}
        assert len(switched) == 1
        for stage in switched.pop():
            model.switch(stage)
        if not boundary:
            assert any(rank.can_start() for rank in ranks) or all(r.is_done for r in ranks)
    assert (model.weights == new.physical_to_logical).all()


def test_what_breaks_the_agreement_is_refused() -> None:
    layout = Layout(2, 2, 2)
    plan = list(
        stages(
            placement(layout, [0, 1], [0, 1]),
            placement(layout, [1, 0], [1, 0]),
            bytes_per_expert=1,
            bytes_per_step=1,
        )
    )
    rank = Rollout(plan)
    with pytest.raises(ValueError, match="agreement is broken"):
        rank.commit(1)
    rank.finish()
    assert not rank.can_start()
    with pytest.raises(ValueError, match="commit first"):
        rank.start()
    assert rank.commit(0) == ()
    assert [stage.layers for stage in rank.commit(1)] == [(0,)]
    with pytest.raises(ValueError, match="agreement is broken"):
        rank.commit(0)
    assert rank.can_start()


def test_wishes_that_cannot_be_met() -> None:
    layout = Layout(2, 2, 2)
    old = placement(layout, [0, 1])
    with pytest.raises(ValueError, match="raise the bound"):
        list(stages(old, old, bytes_per_expert=10, bytes_per_step=9))
    for other in (placement(layout, [0, 1], [0, 1]), placement(Layout(2, 2, 1), [0, 1])):
        with pytest.raises(ValueError, match="one layout"):
            list(stages(old, other, bytes_per_expert=1, bytes_per_step=9))
        with pytest.raises(ValueError, match="one layout"):
            settled(old, other)
