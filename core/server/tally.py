"""Sums by metric and labels, which add up across processes. Knows no metric's meaning."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import final

from msgspec import Struct

__all__ = ("Series", "Snapshot", "Tally", "merged")


class Series(Struct, frozen=True, array_like=True):
    """One metric under one set of label values. A counter or gauge has one value; a histogram its
    buckets' counts (not cumulative, one more than bounds) and then the sum of what was observed."""

    metric: str
    labels: tuple[str, ...]
    values: tuple[float, ...]


class Snapshot(Struct, frozen=True, array_like=True):
    """What one process counted. Gauges are true at `time` (Unix seconds) alone."""

    time: float
    totals: tuple[Series, ...]
    gauges: tuple[Series, ...]


@final
class Tally:
    """Grows only."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[tuple[str, tuple[str, ...]], list[float]] = {}

    def add(self, metric: str, labels: tuple[str, ...], values: Sequence[float]) -> None:
        """Add a vector: the way in for counters and for histograms counted elsewhere."""
        key = (metric, labels)
        sums = self._sums.get(key)
        if sums is None:
            self._sums[key] = [float(value) for value in values]
            return
        for k, value in enumerate(values):
            sums[k] += value

    def count(self, metric: str, labels: tuple[str, ...], value: float = 1) -> None:
        self.add(metric, labels, (value,))

    def observe(
        self, metric: str, labels: tuple[str, ...], bounds: tuple[float, ...], value: float
    ) -> None:
        """One observation; a bucket holds values up to and including its bound."""
        sums = self._sums.setdefault((metric, labels), [0.0] * (len(bounds) + 2))
        sums[bisect_left(bounds, value)] += 1
        sums[-1] += value

    def series(self) -> tuple[Series, ...]:
        return tuple(
            Series(metric, labels, tuple(sums)) for (metric, labels), sums in self._sums.items()
        )


def merged(parts: Iterable[Iterable[Series]]) -> tuple[Series, ...]:
    """The sum. Independent of the order of `parts`, up to the order of the result."""
    tally = Tally()
    for part in parts:
        for series in part:
            tally.add(series.metric, series.labels, series.values)
    return tally.series()
