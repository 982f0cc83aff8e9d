"""The rows of the persistent batch: what a running sequence keeps from step to step. No device.

A sequence takes a row when it first runs and keeps it; only what a step changed is written: a new
block, not the table. Everything is a numpy array over rows, so that a step gathers and never loops.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import final

import numpy as np
from numpy.typing import NDArray

from tokenwire.core import seeds
from tokenwire.core.tokens import JobSampling
from tokenwire.plugins.engines.cuda.policy.groups import first_needed
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Rows",)

COLDEST, HOTTEST = 1e-9, 1e30
"""Temperatures between which float32 scores stay finite. Colder: greedy, as no noise would reach
from one score to the next; hotter: all ids are equal anyway."""
MOST_IDS = 2**31 - 1


@final
class Rows:
    def __init__(self, size: int, width: int, windows: Many[int], block_size: int) -> None:
        """`size` rows, with a table of `width` blocks a KV group; `windows`: each group's."""
        groups = len(windows)
        self.tables: tuple[NDArray[np.int32], ...] = tuple(
            np.zeros((size, width), np.int32) for _ in range(groups)
        )
        """[size, width] block ids a group; 0: none."""
        self.temperature = np.zeros(size, np.float32)
        self.top_k = np.zeros(size, np.int32)
        self.top_p = np.ones(size, np.float32)
        self.min_p = np.zeros(size, np.float32)
        self.seed = np.zeros(size, np.int64)
        self.adapter = np.zeros(size, np.int32)
        self._windows = tuple(windows)
        self._block_size = block_size
        self._has_window = any(windows)
        self._free = list(range(size - 1, -1, -1))
        self._of: dict[int, int] = {}
        self._synced = [[0] * size for _ in range(groups)]
        """How many entries of a row's table are written."""
        self._dropped = [[0] * size for _ in range(groups)]
        """How many of them fell out of the window."""

    def row(self, sequence: Sequence, start: int) -> int:
        """The row of a sequence that `take` gave one, with its tables as they are now; `start`:
        the first position that the step computes."""
        row = self._of[sequence.order]
        for group, table in enumerate(sequence.tables):
            synced, now = self._synced[group], len(table)
            if synced[row] != now:
                self.tables[group][row, synced[row] : now] = table[synced[row] :]
                synced[row] = now
        if self._has_window:
            self._drop(row, start)
        return row

    def has(self, sequence: Sequence) -> bool:
        return sequence.order in self._of

    def take(self, sequence: Sequence, sampling: JobSampling, adapter: int) -> None:
        row = self._of[sequence.order] = self._free.pop()
        heat = sampling.temperature
        self.temperature[row] = min(heat, HOTTEST) if heat >= COLDEST else 0.0
        self.top_k[row] = min(sampling.top_k, MOST_IDS)
        self.top_p[row] = sampling.top_p
        self.min_p[row] = sampling.min_p
        self.seed[row] = seeds.mix(sampling.seed, sequence.choice)
        self.adapter[row] = adapter

    def forget(self, sequence: Sequence) -> None:
        """It is over or preempted. Nothing, where it has no row."""
        row = self._of.pop(sequence.order, None)
        if row is None:
            return
        for group, table in enumerate(self.tables):
            table[row, : self._synced[group][row]] = 0
            self._synced[group][row] = self._dropped[group][row] = 0
        self._free.append(row)

    @property
    def used(self) -> int:
        return len(self._of)

    def _drop(self, row: int, start: int) -> None:
        """Why: a block that fell out of the window may be another sequence's by now, and what it
        holds must not be read, not even under a mask."""
        for group, window in enumerate(self._windows):
            first = first_needed(window, start, self._block_size)
            dropped = self._dropped[group]
            if first > dropped[row]:
                self.tables[group][row, dropped[row] : first] = 0
                dropped[row] = first
