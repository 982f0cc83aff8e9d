"""Runs jobs on the engine, wave after wave, and gives back what came: for tests alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.settings import Place, convert
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenDelta, TokenJob

__all__ = ("Answer", "engine", "job", "poison", "run", "waves")


class Answer:
    """Of one choice."""

    def __init__(self) -> None:
        self.deltas: list[TokenDelta] = []

    @property
    def ids(self) -> list[int]:
        return [id for delta in self.deltas for id in delta.ids]

    @property
    def finish(self):
        return self.deltas[-1].finish

    @property
    def counts(self):
        return self.deltas[-1].counts

    @property
    def logprobs(self):
        return [entry for delta in self.deltas for entry in delta.logprobs]


def job(name: str, prompt: Sequence[int], *, max_tokens: int = 12, **fields: Any) -> TokenJob:
    """Greedy, and never ended by eos, unless `fields` say otherwise."""
    base: dict[str, Any] = {
        "sampling": JobSampling(temperature=0.0),
        "stopping": JobStopping(max_tokens=max_tokens, ignore_eos=True),
    }
    return TokenJob(job=name, model="m", prompt=TokenIds(prompt), **(base | fields))


def engine(
    path: Path | None = None, *, tokenizer: Tokenizer | None = None, **fields: Any
) -> Engine:
    """Small, on a CPU; the tiny Llama where no `path` is given."""
    from tokenwire.plugins.engines.cuda.build import build
    from tokenwire.plugins.engines.cuda.settings import CudaSettings

    base = {
        "path": str(path or tiny_llama()),
        "device": "cpu",
        "max_batch_size": 8,
        "kv_gib": 0.002,
        "block_size": 4,
        "threads": 1,
    }
    settings = convert(CudaSettings, base | fields, Place("test", "engine"))
    return build(settings, replace(lone_services(), tokenizer=tokenizer))


def poison(made: Engine) -> None:
    """NaN in all KV memory: whoever reads what nobody wrote gives nonsense."""
    for cache in made._worker._runner.passes.caches:
        cache.k.fill_(math.nan)
        cache.v.fill_(math.nan)


def waves(made: Engine, *jobs: Sequence[TokenJob]) -> dict[tuple[str, int], Answer]:
    """Every wave is submitted when the one before is over; then the engine is drained."""
    return asyncio.run(_waves(made, jobs))


def run(made: Engine, *jobs: TokenJob) -> dict[tuple[str, int], Answer]:
    return waves(made, jobs)


async def _waves(made: Engine, jobs: Sequence[Sequence[TokenJob]]) -> dict[tuple[str, int], Answer]:
    found: dict[tuple[str, int], Answer] = {}
    reader = made.batches()
    for wave in jobs:
        left = sum(each.n for each in wave)
        made.submit(wave)
        while left:
            for delta in await anext(reader):
                found.setdefault((delta.job, delta.choice), Answer()).deltas.append(delta)
                left -= delta.finish is not None
    await asyncio.gather(made.drain(0), _drained(reader))
    return found


async def _drained(reader) -> None:
    async for _ in reader:
        pass
