"""Embedding jobs that wait, and which go together into one pass. Knows no torch and no clock."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import final

from tokenwire.core.tokens import TokenJob

__all__ = ("EmbeddingQueue", "Pending")


@final
class Pending:
    """A job that has no finish yet."""

    __slots__ = ("adapter", "arrived", "due", "is_over", "job")

    def __init__(self, job: TokenJob, *, arrived: float, due: float | None, adapter: int) -> None:
        """`adapter`: its slot, 0 for none."""
        self.job = job
        self.arrived = arrived
        self.due = due
        self.adapter = adapter
        self.is_over = False


@final
class EmbeddingQueue:
    """By priority, then by arrival. A job that is over is passed by when its turn comes."""

    def __init__(self, max_texts: int, max_tokens: int) -> None:
        self._max_texts = max_texts
        self._max_tokens = max_tokens
        self._heap: list[tuple[int, int, Pending]] = []
        self._open: dict[str, list[Pending]] = {}
        self._order = 0

    def __len__(self) -> int:
        """Jobs without a finish, those that run among them."""
        return sum(map(len, self._open.values()))

    def add(self, pending: Pending) -> None:
        self._order += 1
        heapq.heappush(self._heap, (-pending.job.priority, self._order, pending))
        self._open.setdefault(pending.job.job, []).append(pending)

    def close(self, pending: Pending) -> None:
        """It has its finish."""
        pending.is_over = True
        name = pending.job.job
        left = [each for each in self._open.get(name, ()) if each is not pending]
        if left:
            self._open[name] = left
        else:
            self._open.pop(name, None)

    def of(self, name: str) -> Sequence[Pending]:
        """All attempts of a job that have no finish."""
        return tuple(self._open.get(name, ()))

    def everything(self) -> Iterator[Pending]:
        for each in tuple(self._open.values()):
            yield from each

    def take(self, now: float) -> tuple[list[Pending], list[Pending]]:
        """The next pass, and those before it whose deadline is past. A job that is larger than a
        pass goes alone, since a text cannot be cut."""
        chosen: list[Pending] = []
        late: list[Pending] = []
        tokens = 0
        while self._heap and len(chosen) < self._max_texts:
            pending = self._heap[0][2]
            size = len(pending.job.prompt)
            is_wanted = not pending.is_over
            is_late = pending.due is not None and pending.due <= now
            if is_wanted and not is_late and chosen and tokens + size > self._max_tokens:
                break
            heapq.heappop(self._heap)
            if is_wanted and is_late:
                late.append(pending)
            elif is_wanted:
                chosen.append(pending)
                tokens += size
        return chosen, late
