"""What happens to every request: CORS, limits, routing. Knows no server.

Paths of the route table go to the flow, all others to the admin application. One path, one set of
limits and CORS, for granian and uvicorn alike.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import final

import msgspec
from msgspec.structs import replace

from tokenwire.core.config import ServerConfig
from tokenwire.core.errors import CallError, ErrorKind, RequestError, ServiceError
from tokenwire.core.exchange import ClientGone
from tokenwire.core.ports.codec import Codec
from tokenwire.core.server.asgi_bridge import AsgiApp, through_asgi
from tokenwire.core.server.backend import Handler
from tokenwire.core.server.body import declared_length, decoded, is_gzip
from tokenwire.core.server.carrier import Carrier, Head
from tokenwire.core.server.cors import Cors
from tokenwire.core.wire import HttpReply, HttpRequest, retry_after
from tokenwire.core.work import request_ids

__all__ = ("Edge", "error_reply")

log = logging.getLogger(__name__)
ADMIN = "admin"
MOST_CANCELS, CANCEL_EVERY_S = 20, 0.05


@final
class Edge:
    """One process's requests: answers them, counts them, and knows when none is left."""

    def __init__(
        self,
        flow: Handler,
        admin: AsgiApp,
        config: ServerConfig,
        counts: dict[tuple[str, int], int],
    ) -> None:
        """`counts`: replies by (codec or "admin", status); kept up to date here."""
        self._flow = flow
        self._admin = admin
        self._limit = config.max_body
        self._patience = config.request_timeout
        self._cors = Cors(config.cors)
        self._running: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._counts = counts

    @property
    def running(self) -> int:
        return len(self._running)

    async def serve(self, head: Head, carrier: Carrier) -> None:
        """Answer one request. Raises nothing but cancellation."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self._idle.clear()
        codec = None
        try:
            carrier.extra = self._cors.extra(head.headers)
            match = self._flow.routes.match(head.method, head.path)
            codec = match.codec
            preflight = self._cors.preflight(head.method, head.headers, match.allowed)
            if preflight is not None:
                await carrier.reply(preflight)
            else:
                await self._answer(head, carrier, codec)
        except ClientGone:
            pass
        except Exception:
            log.exception("%s %s failed", head.method, head.path)
            await self._refuse(ServiceError(), carrier, codec)
        finally:
            await carrier.finish()
            self._count(codec, carrier.status)
            self._running.discard(task)
            if not self._running:
                self._idle.set()

    async def _answer(self, head: Head, carrier: Carrier, codec: Codec | None) -> None:
        headers = head.headers
        try:
            gzip, body = await self._read(head, carrier)
        except RequestError as error:
            # Why: what is left of the body would be read as the next request.
            carrier.extra = (*carrier.extra, ("connection", "close"))
            await self._refuse(error, carrier, codec)
            return
        if gzip:
            try:
                body = await decoded(body, self._limit)
            except RequestError as error:
                await self._refuse(error, carrier, codec)
                return
            headers = {name: value for name, value in headers.items() if name not in CODED}
        request = HttpRequest(head.method, head.path, headers, head.query, body)
        if codec is None:
            await through_asgi(self._admin, request, carrier)
        else:
            await self._flow.handle(request, carrier)

    async def _read(self, head: Head, carrier: Carrier) -> tuple[bool, bytes]:
        """(whether it is gzip, the body); a RequestError leaves it unread, or some of it."""
        length = declared_length(head.headers, self._limit)
        if length == 0:
            return False, b""
        gzip = is_gzip(head.headers)
        try:
            async with asyncio.timeout(self._patience):
                return gzip, await carrier.body(self._limit, length)
        except TimeoutError as error:
            raise RequestError(
                f"the request's body did not arrive within {self._patience:g} s"
            ) from error

    async def _refuse(
        self,
        error: CallError,
        carrier: Carrier,
        codec: Codec | None,
    ) -> None:
        """Say no, in the route's own shape and under an id of ours, unless an answer has begun."""
        if carrier.status:
            return
        request_id = f"req_{secrets.token_hex(12)}"
        reply = error_reply(error) if codec is None else codec.encode_error(error, request_id)
        head = {**reply.headers, **dict(request_ids(request_id))}
        if error.kind is ErrorKind.UNSUPPORTED_MEDIA:
            # RFC 9110, 15.5.16: say which codings would have been taken.
            head["accept-encoding"] = "gzip"
        with suppress(ClientGone):
            await carrier.reply(replace(reply, headers=head))

    def _count(self, codec: Codec | None, status: int) -> None:
        key = (ADMIN if codec is None else codec.name, status)
        self._counts[key] = self._counts.get(key, 0) + 1

    async def idle(self) -> None:
        """Returns when no request is running."""
        await self._idle.wait()

    async def abort(self) -> None:
        """Cancel what is running until it ends: a client that does not read holds even an end."""
        for _ in range(MOST_CANCELS):
            tasks = tuple(self._running)
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=CANCEL_EVERY_S)


CODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def error_reply(error: CallError) -> HttpReply:
    """An error of a path that no protocol owns, in a shape that all clients can read."""
    body = {
        "type": "error",
        "error": {
            "type": error.kind.word,
            "message": error.message,
            "param": error.param,
            "code": error.code,
        },
    }
    encoded = msgspec.json.encode(body)
    return HttpReply(error.status, "application/json", encoded, retry_after(error))
