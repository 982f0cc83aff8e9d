"""Loads of the last steps, and whether ranks are uneven enough to move experts. Knows no policy.

A forward pass counts, for each layer, the tokens that each physical expert got; the counts of all
ranks are summed, and come in here once a step. They are mapped to logical experts with the
placement they were made under, so a window may span a change."""

from __future__ import annotations

from typing import final

import msgspec
import numpy as np

from tokenwire.plugins.engines.cuda.policy.experts.balance import balancedness
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Layout,
    Placement,
)

__all__ = ("LoadWindow", "Verdict", "logical_counts")


def logical_counts(counts: Ints, placement: Placement) -> Ints:
    """[layers, experts] of `counts` [layers, slots]; ValueError where they are of other slots."""
    table, layout = placement.physical_to_logical, placement.layout
    if counts.shape != table.shape:
        raise ValueError(f"wanted counts [layers, slots] {table.shape}, got {counts.shape}")
    found = np.zeros((placement.layers, layout.experts), dtype=np.int64)
    np.add.at(found, (np.arange(placement.layers)[:, None], table), counts)
    return found


@final
class Verdict(msgspec.Struct, frozen=True):
    wants_rebalance: bool
    balancedness: float
    """Mean over the window's steps and layers of what was measured; 1.0 where it is empty."""
    reason: str


@final
class LoadWindow:
    """The last `steps` steps. A rebalance may be wanted every `interval` steps, the first time
    after a quarter of it, and only where measured balancedness is below `bar`."""

    def __init__(
        self,
        layout: Layout,
        layers: int,
        *,
        steps: int = 100,
        interval: int = 3000,
        bar: float = 0.9,
    ) -> None:
        if steps < 1 or interval < 1 or not 0 <= bar <= 1:
            wanted = "wanted a window and an interval of at least 1 step and a bar from 0 to 1"
            raise ValueError(f"{wanted}, got {steps}, {interval} and {bar}")
        self._layout = layout
        self._loads = np.zeros((steps, layers, layout.experts), dtype=np.int64)
        self._scores = np.ones((steps, layers), dtype=np.float32)
        self._interval, self._bar = interval, bar
        self._seen = 0
        self._next = max(1, interval // 4)

    def __len__(self) -> int:
        """Steps that are in it."""
        return min(self._seen, len(self._loads))

    def push(self, counts: Ints, placement: Placement) -> None:
        """A step's `counts` [layers, slots], summed over ranks, made under `placement`."""
        layers, layout = self._loads.shape[1], self._layout
        if placement.layout != layout or placement.layers != layers:
            wanted, got = (
                f"{layout} of {layers} layers",
                f"{placement.layout} of {placement.layers}",
            )
            raise ValueError(f"wanted a placement for {wanted}, got {got}")
        at = self._seen % len(self._loads)
        self._loads[at] = logical_counts(counts, placement)
        by_rank = counts.reshape(layers, layout.ranks, -1).sum(axis=2)
        self._scores[at] = balancedness(by_rank[None].astype(np.float32))[0]
        self._seen += 1

    def load(self) -> Floats:
        """[steps, layers, experts], oldest first: what a policy looks at."""
        size = len(self._loads)
        order = np.arange(max(self._seen - size, 0), self._seen) % size
        return self._loads[order].astype(np.float32)

    def total(self) -> Ints:
        """[layers, experts] over the window."""
        total: Ints = self._loads.sum(axis=0)
        return total

    def balancedness(self) -> Floats:
        """[steps, layers] as measured, oldest first: with the replicas that tokens really took."""
        size = len(self._scores)
        order = np.arange(max(self._seen - size, 0), self._seen) % size
        return self._scores[order]

    def verdict(self) -> Verdict:
        """After a step's push. A yes or a "balanced" starts the interval anew."""
        score = float(self.balancedness().mean(dtype=np.float64)) if self._seen else 1.0
        if self._seen < self._next:
            return Verdict(False, score, f"next look after step {self._next}")
        self._next = self._seen + self._interval
        if score >= self._bar:
            return Verdict(False, score, f"balanced: {score:.3f} of at least {self._bar:.3f}")
        return Verdict(True, score, f"unbalanced: {score:.3f} of at least {self._bar:.3f}")
