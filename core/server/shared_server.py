"""A store lent to other processes over a Unix socket: the server. Knows no configuration.

Each client's requests are answered in the order in which they came, one at a time, which costs a
store in memory nothing. What is no frame cuts its client off, and nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from pathlib import Path
from typing import assert_never, final

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Store, name_bytes, name_text
from tokenwire.core.server.shared_frames import (
    MAX_FRAME,
    Apply,
    Delete,
    Get,
    Keys,
    Reply,
    Request,
    Set,
    decode,
    encode,
    read_frame,
)

__all__ = ("SharedStoreServer",)

LOG = logging.getLogger(__name__)


@final
class SharedStoreServer:
    """Serves `store` at `path` (which only this user may open) from `start` to `stop`. The store
    stays the caller's to close."""

    def __init__(self, store: Store, path: Path, *, max_frame: int = MAX_FRAME) -> None:
        self._store = store
        self._path = path
        self._max_frame = max_frame
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Takes over a socket that a dead process left. Raises StoreError where it cannot listen,
        or where another server lives at the path."""
        try:
            listener = _listen(self._path)
        except OSError as error:
            raise StoreError(f"cannot serve the store at {self._path}: {error}") from error
        self._server = await asyncio.start_unix_server(self._serve, sock=listener)

    async def stop(self) -> None:
        """Ends all connections and removes the socket. A second call does nothing."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for client in self._clients:
            client.cancel()
        if self._clients:
            await asyncio.wait(self._clients)
        await server.wait_closed()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            await self._talk(reader, writer)
        except StoreError as error:
            LOG.warning("a client of the shared store was cut off: %s", error)
        except (OSError, EOFError):
            pass  # Why: a client that goes away is how every connection ends.
        except asyncio.CancelledError:
            pass  # Why: stop() asked, and nobody awaits this task for more than its end.
        finally:
            self._clients.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            body = await read_frame(reader, max_frame=self._max_frame)
            request: Request = decode(body, Request)  # type: ignore[arg-type]
            try:
                frame = encode(await self._answer(request), max_frame=self._max_frame)
            except StoreError as error:
                frame = encode(Reply(request.id, str(error)))
            except Exception:
                LOG.exception("the shared store failed")
                frame = encode(Reply(request.id, "the store met an internal error"))
            writer.write(frame)
            await writer.drain()

    async def _answer(self, request: Request) -> Reply:
        space = name_text(request.namespace)
        match request:
            case Get():
                value = await self._store.get(space, name_text(request.key))
                return Reply(request.id, value=value)
            case Set():
                key = name_text(request.key)
                await self._store.set(space, key, request.value, ttl_s=request.ttl_s)
                return Reply(request.id)
            case Delete():
                was_there = await self._store.delete(space, name_text(request.key))
                return Reply(request.id, number=float(was_there))
            case Keys():
                names = tuple(name_bytes(name) for name in await self._store.keys(space))
                return Reply(request.id, names=names)
            case Apply():
                number = await self._store.apply(request.op, space, name_text(request.key))
                return Reply(request.id, number=number)
            case _:
                assert_never(request)


def _listen(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode):
            if _is_alive(path):
                raise OSError("another server answers there")
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Why: on Linux the file gets the socket's own mode, so it is never open to others.
        with contextlib.suppress(OSError):
            os.fchmod(listener.fileno(), 0o600)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(128)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except TimeoutError:
            return True  # Why: somebody holds the socket, however slow.
        except OSError:
            return False
    return True
