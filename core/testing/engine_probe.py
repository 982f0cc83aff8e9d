"""What a law of the engine kit works with: an engine that is read, jobs, answers, complaints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, TypeVar, final

from tokenwire.core.ports.engine import Engine
from tokenwire.core.testing.laws import Probe
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    EngineCard,
    Finish,
    FinishKind,
    IdLogprobs,
    JobSampling,
    JobStopping,
    TokenDelta,
    TokenJob,
)

__all__ = ("Answer", "EngineProbe", "Make")

GREEDY = JobSampling(temperature=0.0)

Make: TypeAlias = Callable[[], AbstractAsyncContextManager[Engine] | Engine]
T = TypeVar("T")


@final
class Answer:
    """The deltas of one choice, in the order in which they came."""

    def __init__(self, job: TokenJob, choice: int) -> None:
        self.job = job
        self.choice = choice
        self.deltas: list[TokenDelta] = []
        self.ended = asyncio.Event()
        self.moved = asyncio.Event()

    def add(self, delta: TokenDelta) -> None:
        self.deltas.append(delta)
        self.moved.set()
        if delta.finish is not None:
            self.ended.set()

    @property
    def ids(self) -> list[int]:
        return [id for delta in self.deltas for id in delta.ids]

    @property
    def forced(self) -> list[int]:
        return [id for delta in self.deltas if delta.forced for id in delta.ids]

    @property
    def logprobs(self) -> list[IdLogprobs]:
        return [entry for delta in self.deltas for entry in delta.logprobs]

    @property
    def finish(self) -> Finish | None:
        """The first there is."""
        return next((each.finish for each in self.deltas if each.finish is not None), None)

    def why(self) -> tuple[str, str]:
        """(kind, cause) of the finish, as words."""
        finish = self.finish
        return ("none", "none") if finish is None else (finish.kind.value, finish.cause.value)


@final
class EngineProbe(Probe):
    """For one run of one law: one engine, read by a task until the probe closes."""

    port = "engine"

    def __init__(
        self,
        engine: Engine,
        law: str,
        *,
        prompts: Sequence[TokenIds],
        tokens: int,
        jobs: int,
        patience_s: float,
        quiet_s: float,
    ) -> None:
        super().__init__(law)
        self.engine = engine
        self.card: EngineCard = engine.status().card
        self.prompts = tuple(prompts) or _prompts(self.card)
        self.tokens = tokens
        self.jobs = jobs
        self.quiet_s = quiet_s
        self.strays: list[TokenDelta] = []
        """Deltas of jobs that nobody asked for."""
        self.has_ended = asyncio.Event()
        """`batches` is over."""
        self._patience_s = patience_s
        self._answers: dict[tuple[str, int], Answer] = {}
        self._count = 0

    def job(self, **fields: Any) -> TokenJob:
        """A small greedy job with a fresh name, changed by `fields`."""
        self._count += 1
        base: dict[str, Any] = {
            "job": f"kit-{self._count}",
            "model": self.card.model,
            "prompt": self.prompts[0],
            "sampling": GREEDY,
            "stopping": JobStopping(max_tokens=self.tokens, ignore_eos=True),
        }
        return TokenJob(**(base | fields))

    def submit(self, *jobs: TokenJob) -> list[Answer]:
        """One answer a choice, in order. The engine is at work on them when the loop turns."""
        answers = [Answer(job, choice) for job in jobs for choice in range(max(job.n, 1))]
        self._answers.update(((answer.job.job, answer.choice), answer) for answer in answers)
        self.engine.submit(jobs)
        return answers

    async def run(self, *jobs: TokenJob) -> list[Answer]:
        """The answers, when all of them have ended."""
        answers = self.submit(*jobs)
        await self.ends(*answers)
        return answers

    async def run_one(self, **fields: Any) -> Answer:
        return (await self.run(self.job(**fields)))[0]

    async def ends(self, *answers: Answer) -> None:
        for answer in answers:
            what = f"job {answer.job.job}, choice {answer.choice}: a finish"
            await self.within(answer.ended.wait(), what)

    async def begins(self, answer: Answer) -> None:
        await self.within(answer.moved.wait(), f"job {answer.job.job}: a first delta")

    async def rest(self) -> None:
        """Time in which nothing more should come."""
        await asyncio.sleep(self.quiet_s)

    async def within(self, what: Awaitable[T], name: str) -> T:
        try:
            return await asyncio.wait_for(what, self._patience_s)
        except TimeoutError:
            self.broken(f"{name} did not come within {self._patience_s:g} s")

    def needs(self, *capabilities: str) -> bool:
        """Whether the card declares them all; a law about others has nothing to say."""
        return all(self.card.can(each) for each in capabilities)

    def ended_well(self, answer: Answer) -> None:
        finish = answer.finish
        if finish is not None and finish.kind is FinishKind.ERROR:
            self.broken(f"job {answer.job.job} failed: {finish.cause.value}: {finish.message}")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """The engine's one reader."""
        task = asyncio.create_task(self._read())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read(self) -> None:
        async for batch in self.engine.batches():
            for delta in batch:
                answer = self._answers.get((delta.job, delta.choice))
                if answer is None:
                    self.strays.append(delta)
                else:
                    answer.add(delta)
        self.has_ended.set()


def _prompts(card: EngineCard) -> tuple[TokenIds, ...]:
    """Three prompts of ordinary ids: a few blocks long, different from their first id on."""
    ids = [id for id in range(card.vocab_size - 1, 0, -1)[:4096] if id not in card.eos_ids]
    length = max(min(2 * card.block_size + 3, card.context_length // 4), 2)
    return tuple(
        TokenIds(ids[(start * 11 + step * 7) % len(ids)] for step in range(length))
        for start in range(1, 4)
    )
