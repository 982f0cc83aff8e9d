"""One call under way: submit its job, stream its answer, abort it when nobody wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import final

from msgspec import Struct

from tokenwire.core.errors import CallError, ErrorKind, RequestError, ServiceError
from tokenwire.core.events import Failed
from tokenwire.core.exchange import ClientGone
from tokenwire.core.failures import constrained_field, constraint_error
from tokenwire.core.keeper import Keeper
from tokenwire.core.ports.codec import Reply
from tokenwire.core.stream import AnswerStream
from tokenwire.core.tokens import AbortReason, TokenDelta
from tokenwire.core.wire import HttpReply
from tokenwire.core.work import Work

__all__ = ("Run", "RunSettings", "error_of")

STREAM_HEADERS = (("cache-control", "no-cache"), ("x-accel-buffering", "no"))
"""Why: caches and buffering proxies would hold the stream back."""


class RunSettings(Struct, frozen=True):
    """Seconds: of silence until a stream gets a comment, that a unary answer may take, and between
    two writes to one stream."""

    keepalive_s: float = 10.0
    timeout_s: float = 600.0
    flush_s: float = 0.0


def error_of(failed: Failed) -> CallError:
    """A failed answer as the error that a status line can carry."""
    if failed.kind.status < 500:
        return RequestError(failed.message, kind=failed.kind, retry_after=failed.retry_after)
    return ServiceError(failed.kind, failed.message, retry_after=failed.retry_after)


@final
class Run:
    """`go` once. Raises CallError while an error status can still be sent, ClientGone when the
    client has left; whatever happens, the engine is told when the job is no longer wanted."""

    def __init__(
        self,
        work: Work,
        reply: Reply,
        stream: AnswerStream,
        settings: RunSettings,
        *,
        answer: Sequence[TokenDelta] | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """`answer`: deltas to play instead of asking the engine. `keeper` keeps a copy, before the
        client has the end of it."""
        self._work = work
        self._exchange = work.exchange
        self._dispatcher = work.model.engine()
        self._job = work.planned.job
        self._reply = reply
        self._stream = stream
        self._answer = answer
        self._settings = settings
        self._keeper = keeper
        stream.holds_end = keeper is not None
        self._headers = work.headers(is_cached=answer is not None)
        self._started = False
        self._reason = AbortReason.CLIENT  # Why the engine is told to stop, if it is.

    async def go(self) -> None:
        helpers = [asyncio.ensure_future(self._watch())]
        if self._answer is None:
            self._dispatcher.submit(self._job, self._stream, self._work.more)
        else:
            helpers.append(asyncio.ensure_future(self._play(self._answer)))
        try:
            if self._work.call.output.stream:
                await self._send_stream()
            else:
                await self._send_whole()
        finally:
            for helper in helpers:
                helper.cancel()
            self._stream.disarm()
            if not self._stream.is_over:
                self._let_go()
                self._stream.leave()
            self._dispatcher.forget(self._job.job)

    async def _play(self, answer: Sequence[TokenDelta]) -> None:
        for delta in answer:
            self._stream.push(delta)
            self._stream.wake()
            await asyncio.sleep(0)

    async def _watch(self) -> None:
        await self._exchange.closed()
        if not self._stream.is_over:
            self._let_go()
        self._stream.leave()

    def _let_go(self) -> None:
        self._dispatcher.abort(self._job.job, None, self._reason)

    async def _send_whole(self) -> None:
        stream = self._stream
        timeout_s = self._settings.timeout_s
        stream.arm(timeout_s)
        if not await stream.wait():
            self._reason = AbortReason.DEADLINE
            raise ServiceError(
                ErrorKind.TIMEOUT,
                f"the answer took longer than {timeout_s:g} s; ask for a stream to get long answers"
                " as they are made",
            )
        if stream.gone:
            raise ClientGone
        if stream.failed is not None:
            raise self._error(stream.failed)
        body = stream.take()
        await self._settle()
        await self._exchange.reply(
            HttpReply(200, self._reply.content_type, body, dict(self._headers))
        )

    async def _send_stream(self) -> None:
        stream, exchange = self._stream, self._exchange
        stream.arm(self._settings.keepalive_s)
        while True:
            is_awake = await stream.wait()
            if stream.gone:
                raise ClientGone
            if stream.failed is not None:
                if not self._started:
                    raise self._error(stream.failed)
                data = self._reply.push(stream.failed)
                await self._settle()
                await exchange.send(data)
                break
            data = stream.take()
            if not data and not is_awake:
                data = self._reply.keepalive()
            if data:
                if not self._started:
                    await self._start()
                if stream.is_over:
                    await self._settle()
                await exchange.send(data)
                stream.taken()
                stream.direct = exchange.push
            if stream.is_over and not stream.has_bytes:
                break
        await exchange.finish()

    def _error(self, failed: Failed) -> CallError:
        """As the client is told it. An engine that will not hold an answer to what the client sent
        says why, for the client alone can mend it."""
        finish, constraint = self._stream.generation.failed_finish, self._job.constraint
        if finish is not None and constraint is not None:
            work = self._work
            param = work.codec.spelled(constrained_field(work.call.dialogue))
            prompt = "\n".join(each.text for each in work.prompts or (work.prompt,))
            if error := constraint_error(finish, constraint, prompt, param):
                return error
        return error_of(failed)

    async def _settle(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.settle(is_good=self._stream.generation.failed is None)

    async def _start(self) -> None:
        self._started = True
        head = (("content-type", self._reply.content_type), *STREAM_HEADERS, *self._headers)
        await self._exchange.start(200, head)

    @property
    def has_started(self) -> bool:
        """Whether the head of a stream has gone out."""
        return self._started
