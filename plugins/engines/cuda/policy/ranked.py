"""Sequences in the order in which they may go: by rank. Knows nothing of why."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import attrgetter
from typing import final

from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Ranked",)

_rank = attrgetter("rank")


@final
class Ranked:
    """A sorted list: adding is a memory move, which for thousands is less than a heap's calls, and
    anybody can leave from the middle."""

    def __init__(self) -> None:
        self.items: list[Sequence] = []

    def add(self, seq: Sequence) -> None:
        insort(self.items, seq, key=_rank)

    def remove(self, seq: Sequence) -> None:
        """Raises ValueError when it is not there."""
        index = bisect_left(self.items, seq.rank, key=_rank)
        if index < len(self.items) and self.items[index] is seq:
            del self.items[index]
        else:
            self.items.remove(seq)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self.items)
