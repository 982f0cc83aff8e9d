"""When a group starts again, and one timer for it at a time. Knows no group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

__all__ = ("LONGEST_S", "Backoff", "Timer")

LONGEST_S: Final = 60.0
"""Between two starts at most; and how long a group must have served for waits to begin anew."""


@final
class Backoff:
    """1, 2, 4 ... 60 seconds."""

    def __init__(self) -> None:
        self._next_s = 1.0
        self._ready_at: float | None = None

    def ready(self, now: float) -> None:
        """It serves."""
        self._ready_at = now

    def fail(self, now: float) -> None:
        """It serves no more."""
        if self._ready_at is not None and now - self._ready_at >= LONGEST_S:
            self._next_s = 1.0
        self._ready_at = None

    def take(self) -> float:
        """How long to wait this time."""
        wait_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_S)
        return wait_s


@final
class Timer:
    """The last call that was set is the one that is made."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float, then: Callable[[], None]) -> None:
        self.clear()
        self._handle = self._loop.call_later(seconds, then)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
