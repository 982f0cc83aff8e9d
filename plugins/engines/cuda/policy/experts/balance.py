"""How evenly ranks are loaded. Knows no policy.

Ranks of an expert-parallel layer wait for the slowest, so a layer of a step lasts as long as its
most loaded rank. Balancedness is mean over max of the ranks, for each layer of each step: the
share of the time in which ranks work. It is averaged over steps, never computed from their sum: a
load that wanders between ranks has an even sum, and no even step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Layout,
    Placement,
    replica_counts,
)

__all__ = ("balancedness", "mean_balancedness", "rank_loads", "rank_loads_of")


CHUNK = 4
"""Layers that are computed together, so that their shares stay in a core's cache."""


def rank_loads(load: Floats, placement: Placement) -> Floats:
    """[steps, layers, ranks] of `load` [steps, layers, experts], replicas sharing evenly."""
    return rank_loads_of(load, placement.layout, [placement.physical_to_logical])[0]


def rank_loads_of(load: Floats, layout: Layout, maps: Sequence[Ints]) -> list[Floats]:
    """The same of each of many maps [layers, slots]."""
    layers = len(maps[0])
    if load.ndim != 3 or load.shape[1:] != (layers, layout.experts):
        raise ValueError(f"wanted a load [steps, {layers}, {layout.experts}], got {load.shape}")
    width = layout.ranks * len(maps)
    rank = np.repeat(np.arange(layout.ranks), layout.slots_per_rank)
    columns = np.concatenate([rank + index * layout.ranks for index in range(len(maps))])
    slots = np.concatenate(maps, axis=1)
    each = [np.take_along_axis(replica_counts(layout, table), table, axis=1) for table in maps]
    share = np.divide(1, np.concatenate(each, axis=1), dtype=np.float32)
    where = slots * width + columns
    by_layer = np.asarray(load, dtype=np.float32).transpose(1, 0, 2)
    loads = np.empty((layers, len(load), width), dtype=np.float32)
    size = layout.experts * width
    for start in range(0, layers, CHUNK):
        some = slice(start, start + CHUNK)
        here = where[some] + np.arange(len(where[some]))[:, None] * size
        flat = np.bincount(here.ravel(), share[some].ravel(), minlength=len(here) * size)
        shares = flat.astype(np.float32).reshape(len(here), layout.experts, width)
        np.matmul(by_layer[some], shares, out=loads[some])
    return np.split(loads.transpose(1, 0, 2), len(maps), axis=2)


def balancedness(ranks: Floats) -> Floats:
    """[steps, layers] in (0, 1] of loads [steps, layers, ranks]; 1 where there is no load."""
    most = ranks.max(axis=-1)
    mean = ranks.mean(axis=-1)
    even = np.ones_like(most)
    shares: Floats = np.divide(mean, most, out=even, where=most > 0)
    return np.minimum(shares, np.float32(1))


def mean_balancedness(load: Floats, placement: Placement) -> float:
    """Over all steps and layers."""
    return float(balancedness(rank_loads(load, placement)).mean(dtype=np.float64))
