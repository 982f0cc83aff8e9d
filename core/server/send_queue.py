"""How much of what was sent a client has not taken yet, as the kernel counts it. Knows no HTTP.

granian's RSGI takes any number of bytes at once and gives no sign when its client reads slowly or
not at all (a stream of 100 MB to a stopped reader is "sent" in 0.1 s, into memory). The kernel's
send queue tells: while it is long, more must not be sent. Linux; elsewhere nothing is held back.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from typing import final

__all__ = ("SendQueues",)

LONG = 128 * 1024
"""Bytes: a queue of more is waited for."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.002, 0.05
SIOCOUTQ = 0x5411
"""tcp(7): unsent and unacknowledged bytes."""
FDS = "/proc/self/fd"


@final
class SendQueues:
    """Of all connections of this process. One for a server."""

    __slots__ = ("_fds",)

    def __init__(self) -> None:
        self._fds: dict[str, int] = {}

    async def settled(self, client: str) -> None:
        """Returns when at most LONG bytes wait for `client` ("host:port"), or it is gone."""
        wait = FIRST_WAIT_S
        while self.length(client) > LONG:
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)

    def length(self, client: str) -> int:
        """Bytes; 0 where that cannot be known."""
        if sys.platform != "linux":
            return 0
        fd = self._fds.get(client)
        if fd is None or _peer(fd) != client:
            self._fds = _connections()
            fd = self._fds.get(client)
            if fd is None:
                return 0
        try:
            return _queued(fd)
        except OSError:
            return 0


def _queued(fd: int) -> int:
    import fcntl

    (length,) = struct.unpack("i", fcntl.ioctl(fd, SIOCOUTQ, b"\0\0\0\0"))
    return int(length)


def _peer(fd: int) -> str | None:
    """ "host:port" of a connected TCP socket; None for anything else."""
    try:
        borrowed = socket.socket(fileno=fd)
    except OSError:
        return None
    try:
        peer = borrowed.getpeername()
    except OSError:
        return None
    finally:
        borrowed.detach()
    if not isinstance(peer, tuple):
        return None
    host, port = peer[0], peer[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _connections() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in os.listdir(FDS):
        peer = _peer(int(name))
        if peer is not None:
            found[peer] = int(name)
    return found
