"""Texts to their vectors: an embedding call's jobs, and what comes of them. Knows no protocol.

One job an input, a few hundred at once, so that the engine can put them together as it likes and
no call of many inputs fills its waiting room. A client that leaves ends its jobs.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Final, final

from tokenwire.core.call import Embed, Embedded
from tokenwire.core.dispatch import Dispatcher
from tokenwire.core.errors import CallError, ErrorKind, RequestError, ServiceError
from tokenwire.core.events import Failed, Usage
from tokenwire.core.exchange import ClientGone, Exchange
from tokenwire.core.failures import INTERNAL, failure
from tokenwire.core.model_table import ModelTable
from tokenwire.core.ports.observer import CallStarted, Observer
from tokenwire.core.run import RunSettings, error_of
from tokenwire.core.served import ServedModel
from tokenwire.core.tale import Tale
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import AbortReason, Finish, TokenDelta, TokenJob
from tokenwire.core.wire import Stamp

__all__ = ("AT_ONCE", "Embeddings", "shortened")

AT_ONCE: Final = 256
"""Jobs of one call that the engine has at a time."""

Vector = tuple[float, ...]

log = logging.getLogger("tokenwire.embedding")


def shortened(vector: Vector, size: int) -> Vector:
    """The first `size` numbers, made to length 1: of models that were trained to be cut so
    (Kusupati et al., Matryoshka Representation Learning, 2022)."""
    first = vector[:size]
    length = math.sqrt(math.fsum(value * value for value in first))
    return tuple(value / length for value in first) if length else first


@final
class Embeddings:
    """Made once; holds no state of any call."""

    def __init__(
        self, models: ModelTable, observers: Sequence[Observer], settings: RunSettings
    ) -> None:
        self._models = models
        self._observers = tuple(observers)
        self._settings = settings

    async def answer(
        self, asked: Embed, exchange: Exchange, stamp: Stamp, protocol: str
    ) -> Embedded:
        """Raises CallError for what cannot be answered, ClientGone when nobody waits any more."""
        began = time.perf_counter()
        model = self._models.find(asked.model)
        model.check(asked)
        dispatcher = model.able("embed")
        size = dispatcher.card.embedding_size
        if size is not None:
            _check_size(asked, model.name, size)
        prompts = await _prompts(asked, model, model.jobs.context_length(dispatcher.card))
        tokens = sum(map(len, prompts))
        started = CallStarted(
            request_id=stamp.id,
            protocol=protocol,
            model=model.name,
            tenant=asked.identity.tenant,
            stream=False,
            prompt_tokens=tokens,
            time=began,
            user=asked.identity.user,
            session=asked.identity.session,
        )
        tale = Tale(self._observers, started)
        outcome, status, computed = ErrorKind.INTERNAL.word, ErrorKind.INTERNAL.status, 0
        try:
            vectors, computed = await self._vectors(asked, prompts, dispatcher, exchange, stamp)
            vectors = _sized(asked, vectors, model.name)
            outcome, status = "ok", 200
        except (ClientGone, asyncio.CancelledError):
            outcome, status = "cancelled", ErrorKind.CLIENT_CLOSED.status
            raise
        except CallError as error:
            outcome, status = error.kind.word, error.status
            raise
        finally:
            usage = Usage(tokens if outcome == "ok" else computed, 0)
            tale.end_without_stream(usage, computed, outcome, status, time.perf_counter())
        return Embedded(model.name, vectors, tokens)

    async def _vectors(
        self,
        asked: Embed,
        prompts: Sequence[TokenIds],
        dispatcher: Dispatcher,
        exchange: Exchange,
        stamp: Stamp,
    ) -> tuple[tuple[Vector, ...], int]:
        """In the inputs' order, and how many tokens were computed."""
        left = asyncio.ensure_future(exchange.closed())
        deadline = time.perf_counter() + self._settings.timeout_s
        vectors: list[Vector] = []
        computed = 0
        try:
            for start in range(0, len(prompts), AT_ONCE):
                name = stamp.id if len(prompts) <= AT_ONCE else f"{stamp.id}.{start}"
                jobs = [
                    TokenJob(
                        job=name,
                        model=dispatcher.card.model,
                        prompt=prompt,
                        task="embed",
                        priority=asked.hints.priority,
                        deadline_ms=asked.hints.deadline_ms,
                    )
                    for prompt in prompts[start : start + AT_ONCE]
                ]
                gathering = await self._gather(jobs, dispatcher, left, deadline)
                vectors += gathering.vectors
                computed += gathering.computed
        finally:
            left.cancel()
        return tuple(vectors), computed

    async def _gather(
        self,
        jobs: Sequence[TokenJob],
        dispatcher: Dispatcher,
        left: asyncio.Future[None],
        deadline: float,
    ) -> Gathering:
        gathering = Gathering(len(jobs))
        name, reason = jobs[0].job, AbortReason.CLIENT
        try:
            dispatcher.submit(jobs[0], gathering, jobs[1:])
            pause = max(deadline - time.perf_counter(), 0)
            await asyncio.wait(
                (gathering.over, left), timeout=pause, return_when=asyncio.FIRST_COMPLETED
            )
            if gathering.over.done():
                failed = gathering.over.result()
                if failed is not None:
                    raise _told(failed, gathering.finish, name)
                return gathering
            if left.done():
                raise ClientGone
            reason = AbortReason.DEADLINE
            raise ServiceError(
                ErrorKind.TIMEOUT,
                f"the answer took longer than {self._settings.timeout_s:g} s; ask for fewer inputs",
            )
        finally:
            if not gathering.is_whole:
                dispatcher.abort(name, None, reason)
            dispatcher.forget(name)


@final
class Gathering:
    """A call's sink (`dispatch.Sink`). `over` gets None when all vectors are there, or why not."""

    def __init__(self, count: int) -> None:
        self.over: asyncio.Future[Failed | None] = asyncio.get_running_loop().create_future()
        self.vectors: list[Vector] = [()] * count
        self.computed = 0
        self.finish: Finish | None = None
        """The engine's own words on a failure, for the log."""
        self._left = count

    @property
    def is_whole(self) -> bool:
        return not self._left

    def push(self, delta: TokenDelta) -> None:
        finish = delta.finish
        if finish is None or self.over.done():
            return
        failed = failure(finish)
        if failed is None and len(delta.vectors) != 1:
            failed = Failed(*INTERNAL)
        if failed is not None:
            self._fail(failed, finish)
            return
        self.vectors[delta.choice] = delta.vectors[0]
        self.computed += 0 if delta.counts is None else delta.counts.computed
        self._left -= 1
        if not self._left:
            self.over.set_result(None)

    def end(self, finish: Finish) -> None:
        if not self.over.done():
            self._fail(failure(finish) or Failed(*INTERNAL), finish)

    def wake(self) -> None:
        """`over` wakes whoever waits."""

    def _fail(self, failed: Failed, finish: Finish) -> None:
        self.finish = finish
        self.over.set_result(failed)


def _told(failed: Failed, finish: Finish | None, request: str) -> CallError:
    if finish is not None:
        log.warning(
            "request %s: engine said %s(%s): %s",
            request,
            finish.kind.value,
            finish.cause.value,
            finish.message,
        )
    return error_of(failed)


async def _prompts(asked: Embed, model: ServedModel, longest: int) -> list[TokenIds]:
    most = asked.first_tokens
    if most is not None and most > longest:
        raise RequestError(
            f"first_tokens: model {model.name!r} takes up to {longest} tokens, got {most}",
            param="first_tokens",
        )
    prompts = await model.raw.whole(asked.inputs, longest if most == -1 else most)
    for k, ids in enumerate(prompts):
        if not len(ids):
            raise RequestError(
                f"inputs: number {k} has no tokens for model {model.name!r}", param="inputs"
            )
        if len(ids) > longest:
            raise RequestError(
                f"inputs: number {k} is too long: {len(ids)} tokens > {longest} maximum of model"
                f" {model.name!r}",
                kind=ErrorKind.CONTEXT_LENGTH,
                param="inputs",
                code="context_length_exceeded",
            )
    return prompts


def _check_size(asked: Embed, model: str, size: int) -> None:
    if asked.dimensions is not None and asked.dimensions > size:
        raise RequestError(
            f"dimensions: a vector of model {model!r} has {size}, got {asked.dimensions}",
            param="dimensions",
        )


def _sized(asked: Embed, vectors: tuple[Vector, ...], model: str) -> tuple[Vector, ...]:
    size = asked.dimensions
    if size is None:
        return vectors
    # Why here too: an engine need not say beforehand how long its vectors are.
    _check_size(asked, model, len(vectors[0]))
    return tuple(shortened(vector, size) for vector in vectors)
