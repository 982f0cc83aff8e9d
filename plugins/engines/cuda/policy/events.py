"""Numbered KV events: what the cache came to hold and no longer holds. Knows no reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored, KvEvent

__all__ = ("EventLog",)


@final
class EventLog:
    """The numbers go on whether or not anybody listens, so that a reader sees its gaps."""

    def __init__(self) -> None:
        self.seq = 0
        self.is_heard = False
        """Only then are events kept for `take`."""
        self._events: list[KvEvent] = []

    def stored(self, hashes: Sequence[bytes], parent: bytes) -> None:
        self.seq += 1
        if self.is_heard:
            names = tuple(identity.hex() for identity in hashes)
            self._events.append(BlockStored(self.seq, names, parent.hex()))

    def removed(self, hashes: Sequence[bytes]) -> None:
        self.seq += 1
        if self.is_heard:
            names = tuple(identity.hex() for identity in hashes)
            self._events.append(BlockRemoved(self.seq, names))

    def restarted(self, hashes: Iterable[bytes]) -> None:
        """All that is held now, where what changed is no chain."""
        self.seq += 1
        if self.is_heard:
            self._events.append(self.snapshot(hashes))

    def take(self) -> tuple[KvEvent, ...]:
        """The events since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def snapshot(self, hashes: Iterable[bytes]) -> BlockSnapshot:
        return BlockSnapshot(self.seq, tuple(identity.hex() for identity in hashes))
