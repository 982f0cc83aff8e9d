"""An engine plugin that passes everything to the mock, and remembers what it was told and when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec import Struct

from tokenwire.core.factory import Factory, Services
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import Control, EngineStatus, TokenDelta, TokenJob
from tokenwire.plugins.engines import mock

SPIES: list[SpyEngine] = []


class SpyEngine(Engine):
    """`jobs` and `controls` with the number of the step in which they came."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.steps = 0
        self.jobs: list[TokenJob] = []
        self.controls: list[tuple[int, Control]] = []
        self.ids: dict[str, list[int]] = {}
        """What each job was answered, all choices in one list."""

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self.jobs += jobs
        self.inner.submit(jobs)

    def control(self, frames: Sequence[Control]) -> None:
        self.controls += [(self.steps, frame) for frame in frames]
        self.inner.control(frames)

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        async for batch in self.inner.batches():
            self.steps += 1
            for delta in batch:
                self.ids.setdefault(delta.job, []).extend(delta.ids)
            yield batch

    def status(self) -> EngineStatus:
        return self.inner.status()

    async def drain(self, timeout_s: float) -> None:
        await self.inner.drain(timeout_s)


def _build(settings: Struct, services: Services) -> Engine:
    factory = next(iter(mock.register_engines()))
    spy = SpyEngine(factory.build(settings, services))
    SPIES.append(spy)
    return spy


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    factory = next(iter(mock.register_engines()))
    return [Factory("spy", factory.settings, _build)]
