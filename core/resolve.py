"""Endpoints by name: `internal://name:port`, and all the addresses that DNS gives for it.

Asked anew on every call, so that whoever reconnects sees replicas come and go. Knows nothing of
what listens there.
"""

from __future__ import annotations

import asyncio
import re
import socket
from typing import final

from msgspec import Struct

__all__ = ("INTERNAL", "Endpoint", "addresses", "parse_internal")

INTERNAL = "internal://"
SHAPE = re.compile(r"internal://(?:\[([0-9a-fA-F:.]+)\]|([^\s:/?#\[\]@]+)):([0-9]{1,5})/?")


@final
class Endpoint(Struct, frozen=True):
    """A name (or an address) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_internal(text: str) -> Endpoint:
    """From `internal://name:port`. Raises ValueError with a sentence; touches no network."""
    found = SHAPE.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 65536:
        raise ValueError(f"wanted internal://name:port with a port of 1 to 65535, got {text!r}")
    return Endpoint(found[1] or found[2], int(found[3]))


async def addresses(endpoint: Endpoint) -> tuple[Endpoint, ...]:
    """Every address of the name, as the resolver orders them, without repeats; a headless service
    gives one for each replica. Raises OSError where the name is unknown."""
    found = await asyncio.get_running_loop().getaddrinfo(
        endpoint.host, endpoint.port, type=socket.SOCK_STREAM
    )
    return tuple(dict.fromkeys(Endpoint(str(place[0]), int(place[1])) for *_, place in found))
