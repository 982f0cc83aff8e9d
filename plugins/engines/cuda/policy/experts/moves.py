"""From one placement to another: what stays, what is copied, what is fetched, and in which steps.

A layer is fetched into staging memory while its old weights serve, over as many steps as a bound of
bytes allows, and switches when all of it has come. Nothing is read that was written in between: a
layer's slots are written at its switch alone, copies within a rank being read before any write.
Knows no link and no clock; plans layer by layer, so planning too can be spread over steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import final

import msgspec
import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Ints,
    Layout,
    Placement,
    check_alike,
)

__all__ = ("Move", "Stage", "layer_moves", "stages")


@final
class Move(msgspec.Struct, frozen=True):
    """Of one expert's weights, from a physical slot as it was to one as it will be."""

    layer: int
    expert: int
    source: int
    target: int
    source_rank: int
    target_rank: int

    @property
    def is_local(self) -> bool:
        return self.source_rank == self.target_rank


@final
class Stage(msgspec.Struct, frozen=True):
    """What happens in one step, and at the boundary after it."""

    fetches: tuple[Move, ...]
    """Into the staging memory of their target ranks, while the step runs."""
    layers: tuple[int, ...] = ()
    """They switch at the boundary: `copies` are read, then all of them is written, maps change."""
    copies: tuple[Move, ...] = ()
    """Within a rank, of `layers`."""


def layer_moves(old: Placement, new: Placement, layer: int) -> tuple[Move, ...]:
    """What has to move for `layer` to be as in `new`, by ascending target slot. From the own rank
    where it has the expert; else from a rank of the same node, else from one sender for each target
    node; holders take turns."""
    layout = new.layout
    before, after = old.physical_to_logical[layer], new.physical_to_logical[layer]
    senders = _Senders(layout, old.logical_to_physical[layer])
    room = layout.slots_per_rank
    moves = []
    for target in np.flatnonzero(before != after).tolist():
        expert, rank = int(after[target]), target // room
        source = senders.source(expert, rank)
        moves.append(Move(layer, expert, source, target, source // room, rank))
    return tuple(moves)


@final
class _Senders:
    """Of one layer: `slots` [experts, most replicas] as they are before."""

    def __init__(self, layout: Layout, slots: Ints) -> None:
        self._room, self._ranks_per_node = layout.slots_per_rank, layout.ranks_per_node
        self._slots = slots
        self._turns: Counter[tuple[int, int | None]] = Counter()
        self._far: dict[tuple[int, int], int] = {}
        """By expert and target node: the slot that serves that node."""

    def source(self, expert: int, rank: int) -> int:
        holders: list[int] = [slot for slot in self._slots[expert].tolist() if slot >= 0]
        own = [slot for slot in holders if slot // self._room == rank]
        if own:
            return own[0]
        node = rank // self._ranks_per_node
        per_node = self._room * self._ranks_per_node
        near = [slot for slot in holders if slot // per_node == node]
        if near:
            return self._in_turn(near, (expert, node))
        if (expert, node) not in self._far:
            self._far[expert, node] = self._in_turn(holders, (expert, None))
        return self._far[expert, node]

    def _in_turn(self, holders: list[int], who: tuple[int, int | None]) -> int:
        turn = self._turns[who]
        self._turns[who] += 1
        return holders[turn % len(holders)]


def stages(
    old: Placement, new: Placement, *, bytes_per_expert: int, bytes_per_step: int
) -> Iterator[Stage]:
    """The steps of the change, in order; none where nothing moves. In a step no rank sends more
    than `bytes_per_step`, and none receives more. A layer begins in the step in which the one
    before it ends, so staging memory holds one layer of a rank and one step's bytes at most."""
    check_alike(old, new)
    most = bytes_per_step // max(bytes_per_expert, 1)
    if bytes_per_expert < 1 or most < 1:
        raise ValueError(
            f"wanted at least one expert of {bytes_per_expert} bytes a step, got a bound of "
            f"{bytes_per_step}: raise the bound"
        )
    steps = [_Step(most)]
    for layer in range(new.layers):
        moves = layer_moves(old, new, layer)
        if not moves:
            continue
        last = 0
        for move in moves:
            if not move.is_local:
                last = max(last, _first_fit(steps, move, most))
        steps[last].layers.append(layer)
        steps[last].copies += [move for move in moves if move.is_local]
        for step in steps[:last]:
            yield step.stage()
        del steps[:last]
    if steps[0].layers:
        yield steps[0].stage()


@final
class _Step:
    """A stage while it fills."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent: Counter[int] = Counter()
        self._received: Counter[int] = Counter()
        self.fetches: list[Move] = []
        self.layers: list[int] = []
        self.copies: list[Move] = []

    def can_take(self, move: Move) -> bool:
        sent, received = self._sent[move.source_rank], self._received[move.target_rank]
        return max(sent, received) < self._most

    def take(self, move: Move) -> None:
        self._sent[move.source_rank] += 1
        self._received[move.target_rank] += 1
        self.fetches.append(move)

    def stage(self) -> Stage:
        return Stage(tuple(self.fetches), tuple(self.layers), tuple(self.copies))


def _first_fit(steps: list[_Step], move: Move, most: int) -> int:
    """The index of the first step that has room for it, and takes it."""
    for index, step in enumerate(steps):
        if step.can_take(move):
            step.take(move)
            return index
    steps.append(_Step(most))
    steps[-1].take(move)
    return len(steps) - 1
