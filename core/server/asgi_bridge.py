"""Plays one exchange through an ASGI application (Litestar), whichever server carries it.

Knows no routes. The request's body is already here, within bounds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, final
from urllib.parse import quote

from tokenwire.core.exchange import Exchange
from tokenwire.core.wire import HttpReply, HttpRequest

__all__ = ("AsgiApp", "Message", "Receive", "Scope", "Send", "through_asgi")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]


async def through_asgi(app: AsgiApp, request: HttpRequest, exchange: Exchange) -> None:
    """Raises ClientGone, and whatever the application lets out."""
    call = _AsgiCall(request, exchange)
    await app(_scope(request), call.receive, call.send)


def _scope(request: HttpRequest) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        # Why: the server drops the body of an answer to HEAD; the answer is GET's.
        "method": "GET" if request.method == "HEAD" else request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": quote(request.path).encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [
            (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in request.headers.items()
        ],
        "client": None,
        "server": None,
        "state": {},
    }


@final
class _AsgiCall:
    __slots__ = ("_body", "_exchange", "_headers", "_started", "_status")

    def __init__(self, request: HttpRequest, exchange: Exchange) -> None:
        self._body: bytes | None = request.body
        self._exchange = exchange
        self._status = 500
        self._headers: list[tuple[str, str]] = []
        self._started = False

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._exchange.closed()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
        elif message["type"] == "http.response.body":
            await self._content(message.get("body", b""), more=message.get("more_body", False))

    async def _content(self, body: bytes, *, more: bool) -> None:
        if not self._started and not more:
            await self._exchange.reply(self._whole(body))
            return
        if not self._started:
            await self._exchange.start(self._status, self._headers)
            self._started = True
        if body:
            await self._exchange.send(body)
        if not more:
            await self._exchange.finish()

    def _whole(self, body: bytes) -> HttpReply:
        headers = {name.lower(): value for name, value in self._headers}
        headers.pop("content-length", None)
        return HttpReply(self._status, headers.pop("content-type", ""), body, headers)
