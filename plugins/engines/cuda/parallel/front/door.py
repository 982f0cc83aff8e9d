"""Where ranks connect: a socket in a folder, or a port of an address. Knows no group, no frame."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tokenwire.core.errors import ConfigError

__all__ = ("listen",)

LONGEST: Final = 103
"""Bytes of a socket's path: 107 on Linux, 103 on macOS."""


async def listen(
    protocol: Callable[[], asyncio.Protocol], folder: Path, rendezvous: str | None
) -> tuple[asyncio.Server, str]:
    """A socket in `folder`, which nobody else may enter; or, where ranks run on several machines, a
    port of the address that these know -> with how an order names it. Raises ConfigError."""
    loop = asyncio.get_running_loop()
    if rendezvous is None:
        path = folder / "front"
        if len(os.fsencode(path)) > LONGEST:
            raise ConfigError(
                f"engine cuda: {path} is longer than the path of a socket may be ({LONGEST} "
                "bytes): set TMPDIR to a folder with a shorter name"
            )
        return await loop.create_unix_server(protocol, str(path)), f"unix:{path}"
    host = rendezvous.rpartition(":")[0].strip("[]")
    try:
        server = await loop.create_server(protocol, host, 0)
    except OSError as error:
        raise ConfigError(
            f"engine cuda: rendezvous is {rendezvous}, and this machine, which is node 0, cannot "
            f"listen there: {error}: name an address of its own that the other machines reach"
        ) from error
    return server, f"tcp:{host}:{server.sockets[0].getsockname()[1]}"
