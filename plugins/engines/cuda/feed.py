"""KV events out of the engine's thread to readers on event loops, each from a snapshot on.

The engine's thread calls `pump` between steps; so a snapshot and the events after it fit together
without a lock. Knows no cache: it gets the log, and a function that makes a snapshot.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import final

from tokenwire.core.tokens import BlockSnapshot, KvEvent
from tokenwire.plugins.engines.cuda.policy.events import EventLog

__all__ = ("KvFeed",)

MAX_BEHIND = 10_000


@final
class _Reader:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()
        self.events: deque[KvEvent] = deque()
        self.is_lost = True
        """It must start (again) from a snapshot."""

    def ring(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.wake.set)
        except RuntimeError:
            # Its loop is closed: it reads no more.
            self.events.clear()


@final
class KvFeed:
    def __init__(self, log: EventLog, snapshot: Callable[[], BlockSnapshot]) -> None:
        self._log = log
        self._snapshot = snapshot
        self._readers: tuple[_Reader, ...] = ()
        self._is_closed = False

    def pump(self) -> None:
        """From the engine's thread: give readers what happened since the last call."""
        readers = self._readers
        self._log.is_heard = bool(readers)
        events = self._log.take()
        for reader in readers:
            if reader.is_lost:
                reader.is_lost = False
                reader.events.append(self._snapshot())
                reader.ring()
            elif events:
                if len(reader.events) > MAX_BEHIND:
                    # Why: a snapshot says in one piece what it did not read in time.
                    reader.events.clear()
                    reader.events.append(self._snapshot())
                else:
                    reader.events.extend(events)
                reader.ring()

    def close(self) -> None:
        """From any thread: readers end once they have read what there is."""
        self._is_closed = True
        for reader in self._readers:
            reader.ring()

    async def read(self, wake_engine: Callable[[], None]) -> AsyncIterator[KvEvent]:
        """`wake_engine`: makes its thread pump, where it sleeps."""
        reader = _Reader()
        self._readers = (*self._readers, reader)
        wake_engine()
        try:
            while True:
                reader.wake.clear()
                while reader.events:
                    yield reader.events.popleft()
                if self._is_closed:
                    return
                await reader.wake.wait()
        finally:
            self._readers = tuple(each for each in self._readers if each is not reader)
