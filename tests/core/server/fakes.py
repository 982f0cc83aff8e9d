"""A deployment of one small protocol, for tests of the edge: no engine, no tokenizer."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence

from tokenwire.core.config import Config
from tokenwire.core.errors import CallError, ConfigError, ErrorKind, RequestError, StoreError
from tokenwire.core.events import Usage
from tokenwire.core.exchange import ClientGone, Exchange
from tokenwire.core.plugin_rows import PluginRow
from tokenwire.core.ports.codec import Codec, Reply
from tokenwire.core.ports.observer import ITL_BOUNDS, CallEnded, CallStarted, Observer
from tokenwire.core.ports.store import Incr, Store
from tokenwire.core.prompt import Prompt, Span
from tokenwire.core.recent import RecentPrompt
from tokenwire.core.routes import RouteTable
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.secrets import read
from tokenwire.core.server.backend import Opened
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import EngineCard, EngineStatus
from tokenwire.core.wire import HttpReply, HttpRequest, Route, retry_after
from tokenwire.plugins.cache.memory.store import MemoryStore


class EchoCodec(Codec):
    name = "echo"
    routes = (
        Route("POST", "/echo", "Say what came"),
        Route("POST", "/stream", "Count"),
        Route("POST", "/flood", "Send without end"),
        Route("POST", "/hang", "Wait for the client to go"),
        Route("POST", "/bug", "Fail"),
        Route("GET", "/seen", "What the handlers saw"),
        Route("GET", "/store", "Count in the store"),
        Route("GET", "/things/{thing}", "One thing"),
    )

    def decode(self, request: HttpRequest):
        raise NotImplementedError

    def reply(self, call, stamp) -> Reply:
        raise NotImplementedError

    def encode_error(self, error: CallError, request_id: str) -> HttpReply:
        body = json.dumps(
            {"oops": error.message, "kind": error.kind.word, "id": request_id}
        ).encode()
        return HttpReply(error.status, "application/json", body, retry_after(error))


class FakeFlow:
    """Plays what the paths above say, and notes what it saw."""

    def __init__(
        self, store: Store | None = None, key: str = "", observers: Sequence[Observer] = ()
    ) -> None:
        self.store = store
        self.key = key
        self.routes = RouteTable([EchoCodec()])
        self.observers = observers
        self.seen: dict[str, float] = {"flooded": 0, "gone": 0, "running": 0}

    async def handle(self, request: HttpRequest, exchange: Exchange) -> None:
        match = self.routes.match(request.method, request.path)
        assert match.codec is not None
        if request.method not in match.allowed:
            error = RequestError("wrong method", kind=ErrorKind.METHOD_NOT_ALLOWED)
            refused = match.codec.encode_error(error, "r1")
            headers = {"allow": ", ".join(match.allowed)}
            await exchange.reply(HttpReply(405, refused.content_type, refused.body, headers))
            return
        self.seen["running"] += 1
        try:
            await getattr(self, "_" + request.path.split("/")[1])(request, exchange)
        finally:
            self.seen["running"] -= 1

    async def _echo(self, request: HttpRequest, exchange: Exchange) -> None:
        self._observe()
        told = {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "headers": dict(request.headers),
            "length": len(request.body),
            "body": request.body[:200].decode("latin-1"),
        }
        await exchange.reply(HttpReply(200, "application/json", json.dumps(told).encode()))

    async def _things(self, request: HttpRequest, exchange: Exchange) -> None:
        await self._echo(request, exchange)

    async def _seen(self, request: HttpRequest, exchange: Exchange) -> None:
        told = {**self.seen, "process": str(os.getpid())}
        await exchange.reply(HttpReply(200, "application/json", json.dumps(told).encode()))

    async def _store(self, request: HttpRequest, exchange: Exchange) -> None:
        assert self.store is not None
        told = {
            "process": os.getpid(),
            "key": self.key,
            "count": await self.store.apply(Incr(), "test", "calls"),
        }
        await exchange.reply(HttpReply(200, "application/json", json.dumps(told).encode()))

    async def _stream(self, request: HttpRequest, exchange: Exchange) -> None:
        plan = json.loads(request.body)
        await exchange.start(200, [("content-type", "text/event-stream")])
        for k in range(plan["events"]):
            await exchange.send(b"data: %d\n\n" % k)
            await asyncio.sleep(plan["pause"])
        await exchange.finish()

    async def _flood(self, request: HttpRequest, exchange: Exchange) -> None:
        await exchange.start(200, [("content-type", "text/event-stream")])
        piece = b"x" * 1000
        self.seen["flooded"] = 0
        try:
            for _ in range(200_000):
                await exchange.send(piece)
                self.seen["flooded"] += len(piece)
                await asyncio.sleep(0)
        except ClientGone:
            self.seen["gone"] += 1

    async def _hang(self, request: HttpRequest, exchange: Exchange) -> None:
        if request.query == "stream":
            await exchange.start(200, [("content-type", "text/event-stream")])
            await exchange.send(b"data: 0\n\n")
        await exchange.closed()
        self.seen["gone"] += 1
        raise ClientGone

    async def _bug(self, request: HttpRequest, exchange: Exchange) -> None:
        raise KeyError("a secret of ours")

    def _observe(self) -> None:
        started = CallStarted("r", "echo", "m", "default", False, 7, time.monotonic())
        counts = [0] * (len(ITL_BOUNDS) + 1)
        counts[0], counts[3], counts[-1] = 5, 2, 1
        usage = Usage(prompt_tokens=7, completion_tokens=9, cached_tokens=4)
        ended = CallEnded(
            "r", "echo", "m", "default", "ok", 200, usage, 3, 0.02, 0.5, tuple(counts), 3.25
        )
        for observer in self.observers:
            observer.call_started(started)
            observer.call_ended(ended)


class FakeDeployment:
    def __init__(
        self, store: Store | None = None, key: str = "", observers: Sequence[Observer] = ()
    ) -> None:
        self.flow = FakeFlow(store, key, observers)
        self.scripts: ScriptBook | None = None
        self.drained = False
        self.is_ready = (True, "")

    def ready(self) -> tuple[bool, str]:
        return self.is_ready

    def models(self) -> tuple[str, ...]:
        return ("m",)

    def engine_statuses(self) -> dict[str, EngineStatus]:
        card = EngineCard("m", 256, 4096)
        return {"m": EngineStatus(card, running=2, waiting=1, kv_blocks_total=8, kv_blocks_free=5)}

    def recent_prompt(self, request_id: str) -> RecentPrompt | None:
        prompt = Prompt(TokenIds([1, 2]), "hello", "content", "f", (Span(0, 2, "client"),))
        return RecentPrompt(prompt, None) if request_id == "known" else None

    def begin_drain(self) -> None:
        self.is_ready = (False, "the server is shutting down")

    async def drain(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.flow.seen["running"] and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        self.drained = True


ROW = PluginRow("codec", "echo", "tests", version="1")


Observers = Sequence[Observer]


async def open_fake(config: Config, store: Store | None, observers: Observers) -> Opened:
    key = "".join(read(secret, os.environ).decode() for secret in config.server.keys)
    return Opened(FakeDeployment(store, key, observers), (ROW,))


async def open_scripted(config: Config, store: Store | None, observers: Observers) -> Opened:
    """As if a mock model were served."""
    deployment = FakeDeployment()
    deployment.scripts = ScriptBook(MemoryStore(max_bytes=1 << 20))
    return Opened(deployment)


async def open_unready(config: Config, store: Store | None, observers: Observers) -> Opened:
    deployment = FakeDeployment()
    deployment.is_ready = (False, "m: its engine is loading")
    return Opened(deployment)


class NoStore(MemoryStore):
    """As a store on another machine that is not there."""

    async def set(self, *args, **kwargs):
        raise StoreError("redis://secret-host:6379 is not reachable")

    get = keys = delete = set


async def open_storeless(config: Config, store: Store | None, observers: Observers) -> Opened:
    deployment = FakeDeployment()
    deployment.scripts = ScriptBook(NoStore(max_bytes=1 << 20))
    return Opened(deployment)


async def open_broken(config: Config, store: Store | None, observers: Observers) -> Opened:
    raise ConfigError("models.m.tokenizer: no such file")
