"""A front's end of a rank's connection. Knows frames, and nothing of groups."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol, cast, final

from tokenwire.plugins.engines.cuda.parallel.frames import (
    Enter,
    FrameError,
    FromFront,
    FromRank,
    Splitter,
    encode,
    read_rank,
)

__all__ = ("Hearer", "Wire")

LOG = logging.getLogger("tokenwire.engine.cuda")
STRANGER_S: Final = 30.0
"""How long a connection may stay without saying who it is."""


class Hearer(Protocol):
    """Whom a wire belongs to, once it has entered."""

    def heard(self, wire: Wire, frame: FromRank) -> None: ...

    def lost(self, wire: Wire) -> None: ...


@final
class Wire(asyncio.Protocol):
    def __init__(self, admit: Callable[[Wire, Enter], Hearer | None]) -> None:
        """`admit`: whose it is; None: nobody's, and it is closed."""
        self._admit = admit
        self._splitter = Splitter()
        self._hearer: Hearer | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.heard_at = asyncio.get_running_loop().time()
        """When the last bytes came, on the loop's clock."""
        self.rank = -1
        self.pid = 0
        self.host = ""

    def send(self, frame: FromFront) -> None:
        """Never blocks: what the rank has not read waits here. Raises FrameError."""
        data = encode(frame)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """At once; the rank's process ends with it."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(STRANGER_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        self._splitter.feed(data)
        try:
            while (frame := self._splitter.next()) is not None:
                self._hear(read_rank(frame))
        except FrameError as error:
            LOG.warning("a rank's connection is closed: %s", error)
            self.close()
        except Exception:
            # Why: its jobs end as those of a lost rank do, instead of waiting for ever.
            LOG.exception("a frame of rank %d could not be handled", self.rank)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._hearer is not None:
            self._hearer.lost(self)

    def _hear(self, frame: FromRank) -> None:
        if self._hearer is not None:
            self._hearer.heard(self, frame)
            return
        if isinstance(frame, Enter):
            self.rank, self.pid, self.host = frame.rank, frame.pid, frame.host
            self._hearer = self._admit(self, frame)
        if self._hearer is None:
            raise FrameError("it does not say a token that is known here")
        self._stop_timer()
        self._splitter.trust()

    def _give_up(self) -> None:
        if self._hearer is None:
            self.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
