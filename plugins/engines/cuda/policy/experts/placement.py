"""Which logical expert each physical slot holds, layer by layer. Knows not why.

A rank owns `slots / ranks` consecutive physical slots of every layer, a node `ranks / nodes`
consecutive ranks. An expert with more than one slot has replicas, which share its tokens."""

from __future__ import annotations

from typing import final

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = ("Floats", "Ints", "Layout", "Placement", "check_alike", "placement_of", "replica_counts")

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@final
class Layout(msgspec.Struct, frozen=True):
    """What a placement has to fit; ValueError where no placement can."""

    experts: int
    """Logical experts of a layer."""
    slots: int
    """Physical experts of a layer, over all ranks: experts and redundant ones."""
    ranks: int
    nodes: int = 1
    groups: int = 1
    """Of experts that a router picks together, consecutive; 1: the router knows no groups."""

    def __post_init__(self) -> None:
        least = min(self.experts, self.slots, self.ranks, self.nodes, self.groups)
        problems = (
            (least < 1, "every number has to be at least 1"),
            (self.slots < self.experts, "every expert needs a slot: add redundant experts"),
            (self.slots % max(self.ranks, 1), "slots have to divide evenly among ranks"),
            (self.ranks % max(self.nodes, 1), "ranks have to divide evenly among nodes"),
            (self.experts % max(self.groups, 1), "experts have to divide evenly among groups"),
        )
        for is_wrong, wanted in problems:
            if is_wrong:
                raise ValueError(f"{wanted}; got {self}: whoever plans the ranks can change it")

    @property
    def slots_per_rank(self) -> int:
        return self.slots // self.ranks

    @property
    def ranks_per_node(self) -> int:
        return self.ranks // self.nodes

    @property
    def is_hierarchical(self) -> bool:
        """Groups can stay whole within nodes, so that tokens of a group cross to one node alone."""
        return self.nodes > 1 and self.groups % self.nodes == 0


@final
class Placement(msgspec.Struct, frozen=True, eq=False):
    """Read-only arrays of int64; made by `placement_of`, which sees to it that they agree."""

    layout: Layout
    physical_to_logical: Ints
    """[layers, slots]."""
    logical_to_physical: Ints
    """[layers, experts, most replicas]: slots in ascending order, then -1."""
    counts: Ints
    """[layers, experts]: replicas, at least 1."""

    @property
    def layers(self) -> int:
        return len(self.counts)

    def equals(self, other: Placement) -> bool:
        mine, theirs = self.physical_to_logical, other.physical_to_logical
        return self.layout == other.layout and np.array_equal(mine, theirs)


def replica_counts(layout: Layout, table: Ints) -> Ints:
    """[layers, experts] of a map [layers, slots]."""
    layers, experts = len(table), layout.experts
    flat = (np.arange(layers)[:, None] * experts + table).ravel()
    return np.bincount(flat, minlength=layers * experts).reshape(layers, experts)


def placement_of(layout: Layout, physical_to_logical: Ints) -> Placement:
    """Of a map [layers, slots]; ValueError where it does not fit the layout, or leaves an expert
    without a replica."""
    table = np.array(physical_to_logical, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != layout.slots or not len(table):
        raise ValueError(f"wanted a map [layers, {layout.slots}], got the shape {table.shape}")
    if table.min() < 0 or table.max() >= layout.experts:
        found = f"{table.min()}..{table.max()}"
        raise ValueError(f"wanted experts 0..{layout.experts - 1} in every slot, got {found}")
    layers, rows = len(table), np.arange(len(table))[:, None]
    counts = replica_counts(layout, table)
    if not counts.all():
        layer, expert = np.argwhere(counts == 0)[0]
        raise ValueError(f"expert {expert} of layer {layer} has no slot: the policy lost it")
    order = np.argsort(table, axis=1, kind="stable")
    first = np.cumsum(counts, axis=1) - counts
    owners = np.take_along_axis(table, order, axis=1)
    column = np.arange(layout.slots) - np.take_along_axis(first, owners, axis=1)
    inverse = np.full((layers, layout.experts, int(counts.max())), -1, dtype=np.int64)
    inverse[rows, owners, column] = order
    for array in (table, inverse, counts):
        array.setflags(write=False)
    return Placement(layout, table, inverse, counts)


def check_alike(old: Placement, new: Placement) -> None:
    """ValueError unless one can become the other."""
    mine, theirs = old.physical_to_logical.shape, new.physical_to_logical.shape
    if old.layout != new.layout or mine != theirs:
        got = f"{old.layout} {mine} and {new.layout} {theirs}"
        raise ValueError(f"wanted two placements of one layout, got {got}")
