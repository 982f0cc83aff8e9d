"""Drives an engine with jobs: their ids, and the seconds of its steps. Knows no network's sizes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import ThreadedEngine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob
from tokenwire.plugins.engines.cuda.build import assemble
from tokenwire.plugins.engines.cuda.load import Loaded
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.sizes import shape

__all__ = ("Driver", "engine_of", "jobs_of")


def engine_of(loaded: Loaded, *, mesh: Mesh | None = None, **settings: Any) -> Engine:
    is_cpu = loaded.model.device.type == "cpu"
    chosen = CudaSettings(grammar="none", **settings)
    found = shape(chosen, loaded.config, None, is_cpu=is_cpu)
    built = assemble(chosen, lone_services(), loaded, found, mesh=mesh)
    return ThreadedEngine(built.worker, built.card, built.slots, "cuda")


def jobs_of(
    count: int, given: int, made: int, vocabulary: int, *, temperature: float = 0.0
) -> list[TokenJob]:
    """Prompts that have nothing in common."""
    return [
        TokenJob(
            job=f"j{index}",
            model="m",
            prompt=TokenIds(
                (index * 7919 + at * 104_729) % (vocabulary - 3) + 3 for at in range(given)
            ),
            sampling=JobSampling(temperature=temperature, seed=index),
            stopping=JobStopping(max_tokens=made, ignore_eos=True),
            credit=made,
        )
        for index in range(count)
    ]


class Driver:
    """One engine for several runs, one after another."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._reader = engine, engine.batches()
        self._loop = asyncio.new_event_loop()

    def ids(self, jobs: list[TokenJob]) -> dict[str, list[int]]:
        return self._run(jobs)[0]

    def steps(self, jobs: list[TokenJob]) -> list[float]:
        """Seconds between steps that brought an id for every job."""
        return self._run(jobs)[1]

    def close(self) -> None:
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        ending = asyncio.ensure_future(self._engine.drain(0))
        # Why: the engine has ended when whoever reads it has read that.
        async for _ in self._reader:
            pass
        await ending

    def _run(self, jobs: list[TokenJob]) -> tuple[dict[str, list[int]], list[float]]:
        return self._loop.run_until_complete(self._answers(jobs))

    async def _answers(self, jobs: list[TokenJob]) -> tuple[dict[str, list[int]], list[float]]:
        found: dict[str, list[int]] = {job.job: [] for job in jobs}
        left, last, steps = len(jobs), 0.0, []
        self._engine.submit(jobs)
        while left:
            batch = await anext(self._reader)
            now = time.perf_counter()
            if last and len(batch) == len(jobs):
                steps.append(now - last)
            last = now
            for delta in batch:
                found[delta.job] += delta.ids
                if delta.finish is not None:
                    left -= 1
                    if len(found[delta.job]) != jobs[0].stopping.max_tokens:
                        raise RuntimeError(f"{delta.job} ended early: {delta.finish}")
        return found, steps or [float("nan")]
