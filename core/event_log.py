"""The events of one stream as they come, for any number of readers who join at any time. No store.

Why by number: the k-th event of a kept stream has the number k (`ports.codec.KeptReply`).
"""

from __future__ import annotations

import asyncio
from typing import Final, final

__all__ = ("EventLog", "events_of")

BREAK: Final = b"\n\n"


def events_of(data: bytes) -> list[bytes]:
    """Whole server-sent events, each with its end; comments are none."""
    return [part + BREAK for part in data.split(BREAK) if part and not part.startswith(b":")]


@final
class EventLog:
    """`add` in the engine's step; `wait` for more than were seen."""

    __slots__ = ("_waiters", "events", "is_over")

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.is_over = False
        self._waiters: set[asyncio.Future[None]] = set()

    def add(self, data: bytes) -> None:
        self.events += events_of(data)
        self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    async def wait(self, seen: int, timeout_s: float) -> None:
        """Returns when there are more than `seen` events, none are to come, or the time is up."""
        if len(self.events) > seen or self.is_over:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            pass
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
