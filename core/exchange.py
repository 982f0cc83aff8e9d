"""The edge's own port: one HTTP exchange, whichever server carries it. Knows no protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from tokenwire.core.wire import HttpReply

__all__ = ("ClientGone", "Exchange")


class ClientGone(Exception):
    """The client closed the connection."""


class Exchange(ABC):
    """One request's way back. Either `reply` once, or `start`, `send`s, `finish`."""

    @abstractmethod
    async def reply(self, reply: HttpReply) -> None:
        """Send a whole reply. Raises ClientGone."""

    @abstractmethod
    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of a stream. Raises ClientGone."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send a piece now; returns when the transport can take more. Raises ClientGone."""

    def push(self, data: bytes) -> bool:
        """Send a piece of a started stream at once, if that takes no waiting; False: nothing was
        sent, and `send` must be used. Never raises: a lost client shows elsewhere."""
        return False

    @abstractmethod
    async def finish(self) -> None:
        """End the stream. Never raises."""

    @abstractmethod
    async def closed(self) -> None:
        """Returns when the client has gone; may be cancelled."""
