"""Another process's store, reached over a Unix socket: a Store like any other. Knows no settings.

Requests are pipelined over one connection a process. Whoever loses the connection fails what is
under way, within a bound, and connects anew. The server's side is in shared_server.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import final

from tokenwire.core.breaker import Breaker
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, Store, name_bytes, name_text
from tokenwire.core.server.shared_frames import (
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

__all__ = ("SharedStore",)

UNSENT_BYTES = 8 * 1024 * 1024
"""How much a client buffers towards a server that does not read; more is refused."""


@final
class _Connection:
    """One connection: requests out, replies matched by id."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._reading = asyncio.get_running_loop().create_task(self._read(reader))

    @property
    def is_lost(self) -> bool:
        return self._reading.done()

    async def ask(self, request: Request, frame: bytes) -> Reply:
        if self._writer.transport.get_write_buffer_size() > UNSENT_BYTES:
            raise ConnectionError("the server does not read")
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = answer
        try:
            self._writer.write(frame)
            return await answer
        finally:
            del self._waiting[request.id]

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait((self._reading,))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                reply = decode(await read_frame(reader), Reply)
                answer = self._waiting.get(reply.id)
                if answer is not None and not answer.done():
                    answer.set_result(reply)
        except (OSError, EOFError, StoreError):
            pass  # Why: whatever ended it, the waiting are told below.
        finally:
            self._writer.transport.abort()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the connection was lost"))


@final
class SharedStore(Store):
    """The store served at `path`. Connects with its first call, and again after a loss; belongs to
    the loop that makes that call. A call is never sent twice."""

    durability = "shared"

    def __init__(self, path: Path, *, timeout_s: float = 0.25) -> None:
        self._path = path
        self._last_id = 0
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False
        self._breaker = Breaker(
            f"the shared store at {path}", timeout_s=timeout_s, probe=self._probe
        )

    async def get(self, namespace: str, key: str) -> bytes | None:
        names = name_bytes(namespace), name_bytes(key)
        return (await self._ask(Get(self._next_id(), *names))).value

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        names = name_bytes(namespace), name_bytes(key)
        await self._ask(Set(self._next_id(), *names, value, ttl_s))

    async def delete(self, namespace: str, key: str) -> bool:
        names = name_bytes(namespace), name_bytes(key)
        return bool((await self._ask(Delete(self._next_id(), *names))).number)

    async def keys(self, namespace: str) -> tuple[str, ...]:
        reply = await self._ask(Keys(self._next_id(), name_bytes(namespace)))
        return tuple(name_text(name) for name in reply.names)

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        names = name_bytes(namespace), name_bytes(key)
        return (await self._ask(Apply(self._next_id(), *names, op))).number

    async def close(self) -> None:
        self._is_closed = True
        await self._breaker.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def _ask(self, request: Request) -> Reply:
        if self._is_closed:
            raise StoreError("the shared store is closed")
        frame = encode(request)

        async def call() -> Reply:
            return await (await self._connect()).ask(request, frame)

        reply = await self._breaker.run(call)
        if reply.error is not None:
            raise StoreError(reply.error)
        return reply

    async def _probe(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        request = Get(self._next_id(), b"", b"")
        await (await self._connect()).ask(request, encode(request))

    async def _connect(self) -> _Connection:
        async with self._connecting:
            if self._connection is None or self._connection.is_lost:
                reader, writer = await asyncio.open_unix_connection(str(self._path))
                self._connection = _Connection(reader, writer)
            return self._connection
