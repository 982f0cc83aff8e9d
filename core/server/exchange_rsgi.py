"""Exchanges over granian's RSGI. Knows no routes and no protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol, final

from granian.rsgi import ProtocolClosed  # pyright: ignore[reportPrivateImportUsage]

from tokenwire.core.exchange import ClientGone
from tokenwire.core.server.body import broken_body, too_large
from tokenwire.core.server.carrier import Carrier, Head, join_headers
from tokenwire.core.server.edge import Edge
from tokenwire.core.server.send_queue import SendQueues
from tokenwire.core.wire import HttpReply

__all__ = ("RsgiApp", "RsgiExchange", "RsgiProtocol", "RsgiScope")

UNWATCHED = 256 * 1024
"""Bytes sent between two looks at what the client has taken."""

QUICK = "PyEmptyAwaitable"
"""What granian's send_bytes gives when it has sent already and there is nothing to wait for."""

Pairs = list[tuple[str, str]]


class RsgiHeaders(Protocol):
    def items(self) -> Pairs: ...


class RsgiScope(Protocol):
    """The parts of granian's scope that are used. `path` is already decoded."""

    proto: str
    method: str
    path: str
    query_string: str
    client: str
    headers: RsgiHeaders


class RsgiStream(Protocol):
    def send_bytes(self, data: bytes) -> Awaitable[None]: ...


class RsgiProtocol(Protocol):
    def __call__(self) -> Awaitable[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def client_disconnect(self) -> Awaitable[None]: ...
    def response_empty(self, status: int, headers: Pairs) -> None: ...
    def response_bytes(self, status: int, headers: Pairs, body: bytes) -> None: ...
    def response_stream(self, status: int, headers: Pairs) -> RsgiStream: ...


@final
class RsgiExchange(Carrier):
    """One request. granian queues what is sent without bound and without telling, so the kernel is
    asked now and then how much of it the client has not taken (send_queue)."""

    __slots__ = (
        "_client",
        "_is_quick",
        "_protocol",
        "_queues",
        "_replied",
        "_stream",
        "_unwatched",
    )

    def __init__(self, protocol: RsgiProtocol, client: str, queues: SendQueues) -> None:
        self._protocol = protocol
        self._client = client
        self._queues = queues
        self._stream: RsgiStream | None = None
        self._unwatched = 0
        self._is_quick = False

    async def body(self, limit: int, length: int | None) -> bytes:
        if length == 0:
            return b""
        try:
            if length is not None:
                return await self._protocol()  # granian never gives more than was declared
            return await self._chunked(limit)
        except ProtocolClosed as error:
            raise broken_body() from error

    async def _chunked(self, limit: int) -> bytes:
        """granian tells no end of chunks from a broken one (2.8.9): what is cut off comes out
        shorter, and it is for decoding to see that its JSON does not end."""
        parts: list[bytes] = []
        size = 0
        async for part in self._protocol:
            size += len(part)
            if size > limit:
                raise too_large(limit)
            parts.append(part)
        return b"".join(parts)

    async def reply(self, reply: HttpReply) -> None:
        headers: Pairs = [*reply.headers.items(), *self.extra]
        if reply.content_type:
            headers.append(("content-type", reply.content_type))
        self.status = reply.status
        try:
            if reply.body:
                self._protocol.response_bytes(reply.status, headers, reply.body)
            else:
                self._protocol.response_empty(reply.status, headers)
        except ProtocolClosed as error:
            raise ClientGone from error

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.status = status
        try:
            self._stream = self._protocol.response_stream(status, [*headers, *self.extra])
        except ProtocolClosed as error:
            raise ClientGone from error

    async def send(self, data: bytes) -> None:
        if self._stream is None:
            raise ClientGone
        try:
            sent = self._stream.send_bytes(data)
            self._is_quick = type(sent).__name__ == QUICK
            await sent
        except ProtocolClosed as error:
            raise ClientGone from error
        self._unwatched += len(data)
        if self._unwatched >= UNWATCHED:
            self._unwatched = 0
            await self._queues.settled(self._client)

    def push(self, data: bytes) -> bool:
        stream = self._stream
        if stream is None or self._unwatched + len(data) >= UNWATCHED or not self._is_quick:
            return False
        try:
            stream.send_bytes(data)
        except ProtocolClosed:
            return False  # `send` will meet it again, and say so
        self._unwatched += len(data)
        return True

    async def finish(self) -> None:
        self._stream = None  # granian ends the body when the last reference goes

    async def closed(self) -> None:
        await self._protocol.client_disconnect()


@final
class RsgiApp:
    """The root application under granian."""

    __slots__ = ("_edge", "_queues")

    def __init__(self, edge: Edge, queues: SendQueues) -> None:
        self._edge = edge
        self._queues = queues

    def rsgi(self) -> Callable[[RsgiScope, RsgiProtocol], Awaitable[None]]:
        """The callable for granian: a plain bound method is its quickest target."""
        return self._serve

    async def _serve(self, scope: RsgiScope, protocol: RsgiProtocol) -> None:
        head = Head(
            scope.method, scope.path, scope.query_string, join_headers(scope.headers.items())
        )
        await self._edge.serve(head, RsgiExchange(protocol, scope.client, self._queues))
