"""An in-process client: requests go straight into the flow, no socket and no server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, final

import msgspec
from msgspec import Struct

from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.deployment import Deployment
from tokenwire.core.exchange import ClientGone, Exchange
from tokenwire.core.host import Host
from tokenwire.core.wire import HttpReply, HttpRequest, SseMessage, SseReader

__all__ = ("MOCK", "LocalClient", "Recording", "Response")

T = TypeVar("T")

MOCK = Config(
    models=(
        ModelConfig(name="mock", engine=PluginUse("mock"), tokenizer=PluginUse("bytes")),
        ModelConfig(name="script", engine=PluginUse("mock"), tokenizer=PluginUse("script")),
    )
)


class Response(Struct, frozen=True):
    """A whole response; `chunks` as they were sent."""

    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def json(self) -> object:
        return msgspec.json.decode(self.body)

    def events(self) -> list[SseMessage]:
        return SseReader().push(self.body)


@final
class Recording(Exchange):
    """Keeps what it is sent; `leave` plays a client that goes away."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.is_finished = False
        self._gone = asyncio.Event()

    def leave(self) -> None:
        self._gone.set()

    async def reply(self, reply: HttpReply) -> None:
        self._check()
        self.status = reply.status
        self.headers = {**reply.headers, "content-type": reply.content_type}
        self.chunks.append(reply.body)
        self.is_finished = True

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self._check()
        self.status, self.headers = status, dict(headers)

    async def send(self, data: bytes) -> None:
        self._check()
        self.chunks.append(data)
        await asyncio.sleep(0)

    async def finish(self) -> None:
        self.is_finished = True

    async def closed(self) -> None:
        await self._gone.wait()

    def _check(self) -> None:
        if self._gone.is_set():
            raise ClientGone


@final
class LocalClient:
    """A deployment and a loop of its own, used as a context manager."""

    def __init__(self, config: Config = MOCK, host: Host | None = None) -> None:
        self._config = config
        self._host = host or Host()
        self._runner = asyncio.Runner()
        self._deployment: Deployment | None = None

    @property
    def deployment(self) -> Deployment:
        assert self._deployment is not None, "enter the client first"
        return self._deployment

    def __enter__(self) -> Self:
        try:
            self._deployment = self._runner.run(self._start())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._runner.run(self.deployment.drain(1.0))
        finally:
            self._runner.close()

    async def _start(self) -> Deployment:
        deployment = await Deployment.start(self._config, self._host)
        await deployment.loaded()
        return deployment

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the deployment's own loop."""
        return self._runner.run(work)

    def script(self, name: str, body: object) -> None:
        """Tell the mock what to produce (the header `x-mock-script` asks for it)."""
        scripts = self.deployment.scripts
        assert scripts is not None, "no mock model is served"
        self._runner.run(scripts.put(name, msgspec.json.encode(body)))

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Response:
        """`body`: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return self.send(HttpRequest("POST", path, dict(headers or {}), body=data))

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Response:
        return self.send(HttpRequest("GET", path, dict(headers or {})))

    def send(self, request: HttpRequest) -> Response:
        exchange = Recording()
        self._runner.run(self.deployment.flow.handle(request, exchange))
        return Response(exchange.status, exchange.headers, tuple(exchange.chunks))
