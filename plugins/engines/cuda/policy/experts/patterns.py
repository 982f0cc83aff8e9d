"""Many steps of load as few that stand for them: sums over steps with the same hot experts.

Strategy: a policy that looks at every step costs time by the step, and neighbours in time often
differ more than steps of the same kind of text do. So steps are grouped by their shape (k-means,
from the steps that lie farthest apart), and a group's loads are summed, which keeps its hot experts
hot and its weight what its steps weigh together. Deterministic. Knows no policy."""

from __future__ import annotations

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import Floats, Ints

__all__ = ("patterns",)

COLUMNS = 4096
"""Of all layers' experts, evenly spread: enough to tell steps apart."""
PASSES = 2


def patterns(load: Floats, most: int) -> Floats:
    """[at most `most`, layers, experts] of `load` [steps, layers, experts]; its sum stays. A group
    that ends up empty is zero."""
    steps = len(load)
    if steps <= most:
        return load
    flat = load.reshape(steps, -1)
    shapes = np.ascontiguousarray(flat[:, :: max(1, flat.shape[1] // COLUMNS)])
    shapes = shapes / np.maximum(shapes.mean(axis=1, keepdims=True), np.float32(1e-9))
    owners = _farthest(shapes, most)
    for _ in range(PASSES):
        owners = _nearest(shapes, _members(owners, most))
    sums: Floats = np.matmul(_members(owners, most), flat).reshape(-1, *load.shape[1:])
    return sums


def _members(owners: Ints, groups: int) -> Floats:
    """[groups, steps]: 1 where the step is of the group."""
    members: Floats = (owners == np.arange(groups)[:, None]).astype(np.float32)
    return members


def _farthest(shapes: Floats, groups: int) -> Ints:
    """Each group's first step is the one farthest from those before it; the rest join the nearest.
    The first of all is the one farthest from the mean."""
    square = (shapes * shapes).sum(axis=1)
    owners = np.zeros(len(shapes), dtype=np.int64)
    centre, closest = shapes.mean(axis=0), np.full(len(shapes), np.inf, dtype=np.float32)
    away = square - 2 * (shapes @ centre)
    for group in range(groups):
        pick = int(away.argmax())
        distance = square - 2 * (shapes @ shapes[pick]) + square[pick]
        is_closer = distance < closest
        owners[is_closer] = group
        closest = np.where(is_closer, distance, closest)
        away = closest
    return owners


def _nearest(shapes: Floats, members: Floats) -> Ints:
    """The group of each step whose mean lies nearest; empty groups stay empty."""
    sizes = members.sum(axis=1, keepdims=True)
    centres = (members @ shapes) / np.maximum(sizes, 1)
    distance = (centres * centres).sum(axis=1)[:, None] - 2 * (centres @ shapes.T)
    distance[sizes[:, 0] == 0] = np.inf
    nearest: Ints = distance.argmin(axis=0)
    return nearest
