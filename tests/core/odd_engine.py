"""An engine plugin that does not fit, does not load or is not ready, as its settings say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from msgspec import Struct

from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import Control, EngineCard, EngineStatus, TokenDelta, TokenJob


class OddSettings(Struct, frozen=True, forbid_unknown_fields=True):
    fingerprints: Mapping[str, str] | None = None
    """None: the tokenizer's."""
    fails: str = ""
    """As it is built: "words" or "bug"."""
    unready: str = ""


class OddEngine(Engine):
    """Takes jobs and says nothing."""

    def __init__(self, settings: OddSettings, services: Services) -> None:
        assert services.tokenizer is not None
        known = services.tokenizer.vocabulary.fingerprints
        found = known if settings.fingerprints is None else {**settings.fingerprints}
        card = EngineCard("odd", 259, services.context_length or 100, fingerprints=found)
        self._status = EngineStatus(card, ready=not settings.unready, reason=settings.unready)
        self._end = asyncio.Event()

    def submit(self, jobs: Sequence[TokenJob]) -> None: ...

    def control(self, frames: Sequence[Control]) -> None: ...

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        await self._end.wait()
        return
        yield ()

    def status(self) -> EngineStatus:
        return self._status

    async def drain(self, timeout_s: float) -> None:
        self._end.set()


def build(settings: OddSettings, services: Services) -> Engine:
    if settings.fails == "words":
        raise ConfigError("it wants a GPU")
    if settings.fails == "bug":
        raise ZeroDivisionError("secret insides")
    return OddEngine(settings, services)


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return [Factory("odd", OddSettings, build)]
