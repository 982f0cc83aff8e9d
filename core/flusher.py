"""Writes that may wait a moment for others of their connection: one timer for all streams.

Knows no bytes and no connection. A stream that was written to less than `interval_s` ago is written
to again when the interval is over, with all that has come by then; so the slowest engine's tokens
go out at once, and the fastest one's share the price of a write.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, final

__all__ = ("Flushed", "Flusher")

log = logging.getLogger("tokenwire.flusher")


class Flushed(Protocol):
    def flush(self) -> None:
        """Write what there is."""


@final
class Flusher:
    """Of one event loop. `interval_s` 0: nothing waits."""

    __slots__ = ("_waiting", "interval_s")

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._waiting: list[Flushed] = []

    def later(self, stream: Flushed) -> None:
        """`flush` it once, soon. Not to be called again before."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(self.interval_s, self._flush)
        self._waiting.append(stream)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for stream in waiting:
            try:
                stream.flush()
            except Exception:
                # Why: the others wait for this call, and none would come again.
                log.exception("a stream could not be written to")
