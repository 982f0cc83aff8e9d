"""The transfer port: move KV pages between engines. Knows pages and tickets, not tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from msgspec import Struct

__all__ = ("Copy", "Region", "Transfer", "TransferState")


class Region(Struct, frozen=True):
    """Registered memory, described so that a peer can address it."""

    id: str
    size: int
    """Bytes."""
    descriptor: bytes


class Copy(Struct, frozen=True):
    """`length` bytes from `source_at` of one region to `target_at` of another."""

    source: Region
    source_at: int
    target: Region
    target_at: int
    length: int


class TransferState(Struct, frozen=True):
    """Where a transfer stands. A failed one says why; what it changed of its target is unknown."""

    done: bool
    failed: str | None = None
    bytes_moved: int = 0


class Transfer(ABC):
    """Laws: a finished transfer's bytes are the source's; none is reported done before they are; a
    lost peer fails within the deadline, never hangs; notifications arrive after the copies before
    them, in order, once."""

    @abstractmethod
    def register(self, memory: memoryview) -> Region:
        """Memory stays valid and in place until `release`."""

    @abstractmethod
    def release(self, region: Region) -> None: ...

    @abstractmethod
    def start(self, copies: Sequence[Copy], *, deadline_s: float) -> str:
        """-> a ticket. Copies of one ticket are unordered among themselves."""

    @abstractmethod
    def poll(self, ticket: str) -> TransferState:
        """Never blocks. Raises KeyError for a ticket that is none, or was seen done already."""

    @abstractmethod
    def notify(self, peer: str, message: bytes) -> None: ...

    @abstractmethod
    def notifications(self) -> Sequence[tuple[str, bytes]]:
        """(peer, message) that came since the last call."""
