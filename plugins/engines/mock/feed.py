"""Numbered KV events for any number of readers, each of which starts from a snapshot."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import final

from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored, KvEvent

__all__ = ("BlockFeed",)

MAX_BEHIND = 10_000


@final
class _Reader:
    def __init__(self) -> None:
        self.events: deque[KvEvent] = deque()
        self.is_lost = True
        """It must start (again) from a snapshot."""
        self.wake = asyncio.Event()


@final
class BlockFeed:
    def __init__(self) -> None:
        self.seq = 0
        self._readers: list[_Reader] = []
        self._closed = False

    def stored(self, hashes: Sequence[bytes], parent: bytes) -> None:
        self.seq += 1
        if self._readers:
            names = tuple(identity.hex() for identity in hashes)
            self._tell(BlockStored(self.seq, names, parent.hex()))

    def removed(self, hashes: Sequence[bytes]) -> None:
        self.seq += 1
        if self._readers:
            self._tell(BlockRemoved(self.seq, tuple(identity.hex() for identity in hashes)))

    def close(self) -> None:
        """Ends all readers once they have read what there is."""
        self._closed = True
        for reader in self._readers:
            reader.wake.set()

    async def read(self, held: Callable[[], Sequence[bytes]]) -> AsyncIterator[KvEvent]:
        """`held`: the identities in the cache now. A reader that falls far behind gets a new
        snapshot in place of what it missed."""
        reader = _Reader()
        self._readers.append(reader)
        try:
            while True:
                if reader.is_lost:
                    reader.is_lost = False
                    reader.events.clear()
                    names = tuple(identity.hex() for identity in held())
                    yield BlockSnapshot(self.seq, names)
                while reader.events and not reader.is_lost:
                    yield reader.events.popleft()
                if reader.is_lost:
                    continue
                if self._closed:
                    return
                reader.wake.clear()
                await reader.wake.wait()
        finally:
            self._readers.remove(reader)

    def _tell(self, event: KvEvent) -> None:
        for reader in self._readers:
            if len(reader.events) >= MAX_BEHIND:
                reader.is_lost = True
            else:
                reader.events.append(event)
            reader.wake.set()
