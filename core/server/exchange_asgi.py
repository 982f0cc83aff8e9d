"""Exchanges over ASGI (uvicorn). Knows no routes and no protocol.

uvicorn's `send` returns when the transport's buffer is below its mark, so a slow reader holds the
sender; of a client that has gone it says nothing, so `receive` is watched while a stream runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import final

from tokenwire.core.exchange import ClientGone
from tokenwire.core.server.asgi_bridge import Message, Receive, Scope, Send
from tokenwire.core.server.body import broken_body, too_large
from tokenwire.core.server.carrier import Carrier, Head, join_headers
from tokenwire.core.server.edge import Edge
from tokenwire.core.wire import HttpReply

__all__ = ("AsgiEdge", "AsgiExchange")


@final
class AsgiExchange(Carrier):
    """One request."""

    __slots__ = ("_receive", "_send", "_streaming", "_watch")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._streaming = False
        self._watch: asyncio.Task[None] | None = None

    async def body(self, limit: int, length: int | None) -> bytes:
        parts: list[bytes] = []
        size = 0
        more = length != 0
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise broken_body()
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise too_large(limit)
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def reply(self, reply: HttpReply) -> None:
        headers = [*reply.headers.items(), *self.extra]
        if reply.content_type:
            headers.append(("content-type", reply.content_type))
        if reply.status != 204:
            headers.append(("content-length", str(len(reply.body))))
        self.status = reply.status
        await self._begin(headers)
        await self._send({"type": "http.response.body", "body": reply.body})

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.status = status
        await self._begin([*headers, *self.extra])
        self._streaming = True
        self._watching()

    async def _begin(self, headers: Sequence[tuple[str, str]]) -> None:
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        start: Message = {"type": "http.response.start", "status": self.status, "headers": pairs}
        await self._send(start)

    async def send(self, data: bytes) -> None:
        if not self._streaming or (self._watch is not None and self._watch.done()):
            raise ClientGone
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        if self._streaming:
            self._streaming = False
            await self._send({"type": "http.response.body", "body": b""})
        if self._watch is not None:
            self._watch.cancel()

    async def closed(self) -> None:
        # Why: a shielded task, so that a cancelled `closed` leaves `send` its watch.
        await asyncio.shield(self._watching())

    def _watching(self) -> asyncio.Task[None]:
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._disconnected())
        return self._watch

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


@final
class AsgiEdge:
    """The root application under uvicorn."""

    __slots__ = ("_edge",)

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # websockets are off, and nothing is tied to the server's lifespan
        pairs = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        query = scope["query_string"].decode("latin-1")
        head = Head(scope["method"], scope["path"], query, join_headers(pairs))
        await self._edge.serve(head, AsgiExchange(receive, send))
