"""Deployments for tests of the wiring: guards, observers, engines and stores that tell what they
were asked, plugged in as anybody's plugins are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from msgspec import Struct

from tests.flow import spy
from tests.flow.spy import SPIES, SpyEngine
from tokenwire.core.call import Identity
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host
from tokenwire.core.ports.guard import Guard
from tokenwire.core.ports.observer import CallEnded, CallStarted, Observer
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.wire import HttpRequest

__all__ = (
    "BYTES",
    "HELLO",
    "PATHS",
    "Doorman",
    "Told",
    "ask",
    "factory",
    "model",
    "module",
    "request",
    "serving",
    "until",
)

BYTES = PluginUse("bytes")
HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = {"chat_completions": "/v1/chat/completions", "messages": "/v1/messages"}


def module(name: str, **hooks: Iterable[Factory[Any]]) -> ModuleType:
    """A plugin: `register_guards=[factory, ...]` and so on."""
    made = ModuleType(name)
    for hook, factories in hooks.items():

        def register(factories: Iterable[Factory[Any]] = factories) -> Iterable[Factory[Any]]:
            return factories

        setattr(made, hook, impl(register))
    return made


def factory(name: str, thing: Any, settings: type[Struct] = NoSettings) -> Factory[Any]:
    """Of a thing that is there already, or of a function (settings, services) that makes it."""
    build: Callable[..., Any] = thing if callable(thing) else lambda settings, services: thing
    return Factory(name, settings, build)


class Doorman(Guard):
    """Says who comes in (None: as before), or raises; keeps what it was asked."""

    def __init__(self, tenant: str | None = None, refusal: Exception | None = None) -> None:
        self.tenant = tenant
        self.refusal = refusal
        self.asked: list[tuple[HttpRequest, Identity]] = []

    async def admit(self, request: HttpRequest, identity: Identity) -> Identity:
        self.asked.append((request, identity))
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        return identity if self.tenant is None else Identity(tenant=self.tenant)


class Told(Observer):
    """Keeps what it is told, then perhaps fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.started: list[CallStarted] = []
        self.ended: list[CallEnded] = []
        self.failure = failure

    def call_started(self, event: CallStarted) -> None:
        assert len(self.ended) <= len(self.started)
        self.started.append(event)
        if self.failure is not None:
            raise self.failure

    def call_ended(self, event: CallEnded) -> None:
        self.ended.append(event)
        if self.failure is not None:
            raise self.failure

    @property
    def tale(self) -> tuple[CallStarted, CallEnded]:
        """Of the one call that there was."""
        (started,), (ended,) = self.started, self.ended
        assert started.request_id == ended.request_id
        return started, ended


def model(name: str = "m", engine: str = "spy", **more: Any) -> ModelConfig:
    """A model on the spied mock; `settings` are its engine's."""
    settings = more.pop("settings", {})
    more.setdefault("tokenizer", BYTES)
    return ModelConfig(name=name, engine=PluginUse(engine, settings), **more)


@contextmanager
def serving(
    *models: ModelConfig,
    guards: Iterable[Guard] = (),
    observers: Iterable[Observer] = (),
    plugins: Iterable[Factory[Any]] = (),
    kind: str = "engines",
    plugins_settings: Mapping[str, Mapping[str, object]] | None = None,
    **config: Any,
) -> Iterator[tuple[LocalClient, list[SpyEngine]]]:
    """A client, and the engines behind it. `plugins`: factories of `kind`; `plugins_settings`: of
    those that serve the whole process."""
    SPIES.clear()
    modules = {
        "spy": spy,
        "doors": module(
            "doors", register_guards=[factory(f"g{k}", each) for k, each in enumerate(guards)]
        ),
        "ears": module(
            "ears", register_observers=[factory(f"o{k}", each) for k, each in enumerate(observers)]
        ),
        "more": module("more", **{f"register_{kind}": list(plugins)}),
    }
    full = Config(models=models or (model(),), plugins=plugins_settings or {}, **config)
    with LocalClient(full, Host(modules)) as client:
        yield client, list(SPIES)
    SPIES.clear()


def request(body: dict[str, Any], protocol: str = "chat_completions") -> HttpRequest:
    return HttpRequest("POST", PATHS[protocol], body=json.dumps(body).encode())


def ask(client: LocalClient, protocol: str = "chat_completions", **more: Any) -> Response:
    needed = {"max_tokens": 4096} if protocol == "messages" else {}
    return client.send(request(HELLO | needed | more, protocol))


async def until(done: Callable[[], object]) -> None:
    """Turns of the loop until something is so; fails when it never is."""
    for _ in range(20_000):
        if done():
            return
        await asyncio.sleep(0.0001)
    raise AssertionError("it did not come to that")
