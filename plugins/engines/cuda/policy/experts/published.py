"""The published expert balance (DeepSeek's EPLB): on loads summed over steps. Knows no step.

Pack: heaviest item first, into the lightest bin that has room, lowest index on ties. Replicate:
one replica each, then one more for whoever has the largest load a replica, lowest index on ties.
Hierarchical where groups divide evenly among nodes (groups to nodes, replicas within a node,
replicas to its ranks), else global: the same with all ranks as one node. Every function works on
all its rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Layout,
    Placement,
    placement_of,
)

__all__ = ("by_nodes", "checked", "pack", "published", "published_map", "replicate")


def checked(load: Floats, layout: Layout) -> Floats:
    """As float32; ValueError unless it is [steps, layers, experts], finite and not negative."""
    if load.ndim != 3 or not load.shape[0] or not load.shape[1] or load.shape[2] != layout.experts:
        raise ValueError(f"wanted a load [steps, layers, {layout.experts}], got {load.shape}")
    found = np.ascontiguousarray(load, dtype=np.float32)
    if not (found.min() >= 0 and found.max() < np.inf):
        raise ValueError("wanted counts of tokens, got negative or infinite ones from the counters")
    return found


def pack(weights: Floats, bins: int) -> Ints:
    """Items [rows, items] bin after bin, each bin with as many, in the order they were packed."""
    rows, items = weights.shape
    room = items // bins
    if room == 1:
        return np.tile(np.arange(items), (rows, 1))
    order = np.argsort(-weights, axis=1, kind="stable")
    heaviest = np.ascontiguousarray(np.take_along_axis(weights, order, axis=1).T)
    base = np.arange(rows) * bins
    loads = np.zeros(rows * bins, dtype=weights.dtype)
    table = loads.reshape(rows, bins)
    held = np.zeros(rows * bins, dtype=np.int64)
    slots = np.empty((items, rows), dtype=np.int64)
    for index in range(items):
        at = table.argmin(axis=1)
        np.add(at, base, out=at)
        have = held[at]
        np.add(at * room, have, out=slots[index])
        have += 1
        held[at] = have
        loads[at] = np.where(have == room, np.inf, loads[at] + heaviest[index])
    packed = np.empty(rows * items, dtype=np.int64)
    packed[slots.T.ravel()] = order.ravel()
    return packed.reshape(rows, items)


def replicate(weights: Floats, slots: int) -> tuple[Ints, Ints]:
    """(the expert of each replica [rows, slots], counts [rows, experts])."""
    rows, experts = weights.shape
    base = np.arange(rows) * experts
    counts = np.ones(rows * experts, dtype=np.int64)
    flat = np.ascontiguousarray(weights).ravel()
    each = flat.copy()
    table = each.reshape(rows, experts)
    owners = np.tile(np.arange(slots) % experts, (rows, 1))
    for index in range(experts, slots):
        chosen = table.argmax(axis=1)
        owners[:, index] = chosen
        chosen += base
        counts[chosen] += 1
        each[chosen] = flat[chosen] / counts[chosen]
    return owners, counts.reshape(rows, experts)


Fill = Callable[[Floats, int, int], Ints]
"""(load [steps, rows, experts], slots, ranks) -> experts [rows, slots], rank after rank."""
PackGroups = Callable[[Floats, int], Ints]
"""(load [steps, layers, groups], nodes) -> groups [layers, groups], node after node."""


def by_nodes(load: Floats, layout: Layout, pack_groups: PackGroups, fill: Fill) -> Ints:
    """The map [layers, slots] in which each node has whole groups, and fills its own slots."""
    steps, layers, experts = load.shape
    nodes, groups = layout.nodes, layout.groups
    size = experts // groups
    sums = load.reshape(steps, layers, groups, size).sum(axis=-1)
    at = pack_groups(sums, nodes)
    order = (at[:, :, None] * size + np.arange(size)).reshape(layers, experts)
    moved = np.take_along_axis(load, np.broadcast_to(order, load.shape), axis=2)
    rows = layers * nodes
    local = fill(
        np.ascontiguousarray(moved.reshape(steps, rows, experts // nodes)),
        layout.slots // nodes,
        layout.ranks_per_node,
    )
    return np.take_along_axis(order.reshape(rows, -1), local, axis=1).reshape(layers, layout.slots)


def _pack_groups(load: Floats, nodes: int) -> Ints:
    return pack(load.sum(axis=0), nodes)


def _fill(load: Floats, slots: int, ranks: int) -> Ints:
    weights = load.sum(axis=0)
    owners, counts = replicate(weights, slots)
    each = np.take_along_axis(weights / counts.astype(np.float32), owners, axis=1)
    return np.take_along_axis(owners, pack(each, ranks), axis=1)


def published_map(load: Floats, layout: Layout) -> Ints:
    """The map [layers, slots] of `load` as `checked` returns it."""
    total = load.sum(axis=0, keepdims=True)
    if layout.is_hierarchical:
        return by_nodes(total, layout, _pack_groups, _fill)
    return _fill(total, layout.slots, layout.ranks)


def published(load: Floats, layout: Layout) -> Placement:
    """Of `load` [steps, layers, experts], hierarchical where the layout is."""
    return placement_of(layout, published_map(checked(load, layout), layout))
