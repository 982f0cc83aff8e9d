"""uvicorn's HTTP/1.1 with a bound on how long a request's head may take, as granian has one.

Knows no routes. Imports uvicorn: only what serves with it may import this.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ("HEAD_TIMEOUT_S", "PatientH11")

HEAD_TIMEOUT_S = 30.0


class PatientH11(H11Protocol):
    """One connection. Its patience begins when it opens or when a later request's first bytes come;
    the silence between two requests is uvicorn's own timer's."""

    patience_s: ClassVar[float] = HEAD_TIMEOUT_S
    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _look(self) -> None:
        """The first bytes start the timer, and no later ones move it: a head in drops must end."""
        if self.conn.their_state is not h11.IDLE:
            self._calm()
        elif self.head_timer is None:
            late = self.timeout_keep_alive_handler
            self.head_timer = self.loop.call_later(self.patience_s, late)

    def _calm(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None
