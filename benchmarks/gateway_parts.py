"""Where the gateway's CPU goes: each part by itself, in one process, no connection.

Used by gateway.py, which measures the whole server. A part is timed alone on fresh, distinct
prompts; what no part accounts for is told as such: tasks, timers, hand-out, observers.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import uvloop
from msgspec import Struct

from tokenwire.core.call import Call
from tokenwire.core.config_file import parse
from tokenwire.core.deployment import Deployment
from tokenwire.core.dispatch import Dispatcher
from tokenwire.core.events import Event
from tokenwire.core.exchange import Exchange
from tokenwire.core.factory import Services
from tokenwire.core.generation import Generation
from tokenwire.core.host import Host
from tokenwire.core.model_parts import assemble
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.ports.engine import Engine
from tokenwire.core.served import ServedModel
from tokenwire.core.signing import Keyring
from tokenwire.core.token_history import TokenHistory
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, EngineCard, TokenDelta, TokenJob
from tokenwire.core.wire import HttpReply, HttpRequest, Stamp

__all__ = ("WHOLE", "Parts", "Shape", "settle_heap")

T = TypeVar("T")
STAMP = Stamp("req_b", 0.0, b"e" * 16)
WHOLE = "in process, whole"


def settle_heap() -> None:
    """As a serving process does (core/server/process.py)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(0.001)


class Shape(Struct, frozen=True):
    """What a load is made of: so many requests at once, tokens out of each, words of a prompt;
    `together`: so many tokens are read at once (they wait for each other between two writes)."""

    requests: int
    tokens: int
    words: int
    stream: bool
    together: int = 1


class _Taker(Exchange):
    """A connection that takes everything at once, and keeps nothing."""

    async def reply(self, reply: HttpReply) -> None: ...

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None: ...

    async def send(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def closed(self) -> None:
        await asyncio.get_running_loop().create_future()

    def push(self, data: bytes) -> bool:
        return True


class Parts:
    """`await measure(shape)`: seconds of CPU of one load, by part, the median of the runs."""

    def __init__(self, config: str, words: Sequence[str], runs: int) -> None:
        """`config`: a configuration file's text."""
        self._config = parse(config, "benchmark", {})
        self._words = words
        self._runs = runs
        self._host = Host()
        self._rng = random.Random(7)

    def measure(self, shape: Shape) -> dict[str, float]:
        settle_heap()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._measure(shape))

    async def _measure(self, shape: Shape) -> dict[str, float]:
        async with AsyncExitStack() as stack:
            found = await self._steps(shape, stack)
            found["mock engine"] = await self._engine(shape)
            known = sum(found.values())
            whole = await self._whole(shape)
            found["hand-out, streams, tasks, timers, observers (the rest)"] = whole - known
            found[WHOLE] = whole
        return found

    def _requests(self, shape: Shape) -> list[HttpRequest]:
        made = []
        for _ in range(shape.requests):
            text = " ".join(self._rng.choices(self._words, k=shape.words))
            body = {
                "model": "bench",
                "messages": [{"role": "user", "content": text}],
                "max_tokens": shape.tokens,
                "temperature": 0.5,
                "stream": shape.stream,
            }
            data = json.dumps(body).encode()
            made.append(HttpRequest("POST", "/v1/chat/completions", body=data))
        return made

    async def _whole(self, shape: Shape) -> float:
        """Every step of a request but the server's: bytes of a body in, bytes of an answer out."""
        deployment = await Deployment.start(self._config, self._host)
        await deployment.loaded()
        figures = []
        for _ in range(self._runs + 1):
            requests = self._requests(shape)
            began = time.process_time()
            await asyncio.gather(
                *(deployment.flow.handle(request, _Taker()) for request in requests)
            )
            figures.append(time.process_time() - began)
        await deployment.drain(1.0)
        return statistics.median(figures[1:])

    async def _engine(self, shape: Shape) -> float:
        """The mock's own: admission, blocks and their hashes, and a delta a token."""
        parts = assemble(self._config.models[0], self._host, Services(Keyring([b"k" * 32])))
        use = self._config.models[0].engine
        engine: Engine = self._host.engines.build(use.plugin, use.settings, parts.services)
        card = engine.status().card
        codec = self._host.codecs.build("chat_completions", {}, parts.services)
        batches = engine.batches()
        figures = []
        for run in range(self._runs + 1):
            jobs: list[TokenJob] = []
            for k, request in enumerate(self._requests(shape)):
                call = codec.decode(request)
                assert isinstance(call, Call)
                prompt = await parts.model.prompt(call, 0.0)
                planned = parts.model.jobs.plan(call, prompt, card, job=f"{run}.{k}", seed=k)
                jobs.append(planned.job)
            began = time.process_time()
            engine.submit(jobs)
            left = len(jobs)
            async for batch in batches:
                left -= sum(delta.finish is not None for delta in batch)
                if not left:
                    break
            figures.append(time.process_time() - began)
        return statistics.median(figures[1:])

    async def _steps(self, shape: Shape, stack: AsyncExitStack) -> dict[str, float]:
        """The flow's own steps, each on all requests in turn."""
        services = Services(Keyring([b"k" * 32]))
        parts = assemble(self._config.models[0], self._host, services)
        model = parts.model
        use = self._config.models[0].engine
        engine: Engine = self._host.engines.build(use.plugin, use.settings, parts.services)
        model.dispatcher = Dispatcher(engine, model.name)
        card = engine.status().card
        store = self._host.stores.build("memory", {}, services)
        stack.push_async_callback(store.close)
        history = TokenHistory(store, 60.0)
        stack.push_async_callback(history.close)
        model.remember(history)
        codec = self._host.codecs.build("chat_completions", {}, parts.services)
        answer = parts.services.tokenizer.encode(" ".join(self._words))  # type: ignore[union-attr]
        ids = TokenIds((answer * (1 + shape.tokens // len(answer)))[: shape.tokens])
        taken: list[dict[str, float]] = []
        for _ in range(self._runs + 1):
            clock = _Clock()
            calls: list[Call] = []
            for request in self._requests(shape):
                call = clock.time("decode the body", codec.decode, request)
                assert isinstance(call, Call)
                calls.append(call)
            await self._prepare(model, calls, card, clock, codec, _deltas(ids, shape.together))
            await asyncio.sleep(0)
            taken.append(clock.seconds)
        return {name: statistics.median(each[name] for each in taken[1:]) for name in taken[0]}

    async def _prepare(
        self,
        model: ServedModel,
        calls: Sequence[Call],
        card: EngineCard,
        clock: _Clock,
        codec: Codec,
        deltas: Sequence[TokenDelta],
    ) -> None:
        """All steps of calls that were decoded."""
        renderer = model.renderer
        rendered = [clock.time("render", renderer.render, call.dialogue, 0.0) for call in calls]
        for each in rendered:
            clock.time("encode", renderer.tokenizer.encode, each.text)
        before = time.process_time()
        prompts = [await model.prompt(call, 0.0) for call in calls]
        rest = time.process_time() - before - clock.seconds["render"] - clock.seconds["encode"]
        clock.seconds["cut, look for the conversation"] = rest
        for call, prompt in zip(calls, prompts, strict=True):
            plan = partial(model.jobs.plan, call, prompt, card, job="j", seed=1)
            planned = clock.time("plan the job", plan)
            generation = clock.time("set up the answer", model.generation, call, prompt, planned)
            reply = clock.time("set up the answer", codec.reply, call, STAMP)
            events = clock.time("detokenize, parse, check", _read, generation, deltas)
            clock.time("write events", _write, reply, events)
            clock.time("keep the conversation", model.keep, call, prompt, generation)


def _read(generation: Generation, deltas: Sequence[TokenDelta]) -> list[Event]:
    push = generation.push
    return [event for delta in deltas for event in push(delta)]


def _write(reply: Reply, events: Sequence[Event]) -> None:
    push = reply.push
    for event in events:
        push(event)


class _Clock:
    """CPU seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, work: Callable[..., T], *given: object) -> T:
        began = time.process_time()
        made = work(*given)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began
        return made


def _deltas(ids: TokenIds, together: int) -> list[TokenDelta]:
    """One answer. The first delta is one id, as engines send it."""
    made = [TokenDelta("j", ids=TokenIds(ids[:1]), counts=Counts(prompt=1))]
    for at in range(1, len(ids), together):
        made.append(TokenDelta("j", at=at, ids=TokenIds(ids[at : at + together])))
    return made
