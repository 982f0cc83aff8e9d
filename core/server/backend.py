"""What the edge needs of whatever it serves. Knows no host, no engine, no protocol.

`core.deployment.Deployment` is one; tests serve smaller ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from tokenwire.core.config import Config
from tokenwire.core.exchange import Exchange
from tokenwire.core.plugin_rows import PluginRow
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.store import Store
from tokenwire.core.recent import RecentPrompt
from tokenwire.core.routes import RouteTable
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.tokens import EngineStatus
from tokenwire.core.wire import HttpRequest

__all__ = ("Backend", "Handler", "Opened", "Opener")


class Handler(Protocol):
    """The flow: answers every request whose path is in `routes`."""

    routes: RouteTable

    async def handle(self, request: HttpRequest, exchange: Exchange) -> None:
        """Guards, decodes, answers; errors in the protocol's own shape."""
        ...


class Backend(Protocol):
    """A running deployment."""

    @property
    def flow(self) -> Handler: ...

    @property
    def scripts(self) -> ScriptBook | None:
        """None unless a mock model is served."""
        ...

    def ready(self) -> tuple[bool, str]:
        """Whether calls can be answered, and why not."""
        ...

    def models(self) -> tuple[str, ...]:
        """Names, without aliases."""
        ...

    def engine_statuses(self) -> Mapping[str, EngineStatus]:
        """By model."""
        ...

    def recent_prompt(self, request_id: str) -> RecentPrompt | None:
        """With `server.debug`: what a recent request was rendered to."""
        ...

    def begin_drain(self) -> None:
        """From now on not ready: send new calls elsewhere. What runs goes on."""
        ...

    async def drain(self, timeout_s: float) -> None:
        """Let running calls end, abort those left after `timeout_s`, free everything."""
        ...


def _nothing() -> None:
    pass


class Opened(Struct, frozen=True):
    """A backend, and the plugins it could choose from."""

    backend: Backend
    plugins: tuple[PluginRow, ...] = ()
    close: Callable[[], None] = _nothing
    """Called once the backend is drained."""


Opener: TypeAlias = Callable[[Config, Store | None, Sequence[Observer]], Awaitable[Opened]]
"""Makes the backend of a process. The store is the one that all workers share; None: its own. The
observers are told of every call, beside those that plugins bring.
A module's function, so that worker processes can import it."""
