"""One engine's reader: hands each delta to the job it belongs to. No task or queue per token.

`submit` and `abort` are synchronous; what comes back is pushed into the job's sink in the engine's
own step, and each touched sink is woken once a step. Knows no text and no protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, final

from msgspec.structs import replace

from tokenwire.core import seeds
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    Credit,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)

__all__ = ("Dispatcher", "Sink")

log = logging.getLogger("tokenwire.dispatch")

LOST = Finish(FinishKind.ERROR, FinishCause.LOST, retryable=True, message="the engine stopped")
BROKEN = Finish(FinishKind.ERROR, FinishCause.INTERNAL, message="the gateway failed on a delta")


class Sink(Protocol):
    """Where a call's deltas go. All calls are quick and synchronous."""

    def push(self, delta: TokenDelta) -> None:
        """One delta, of whichever choice. What it raises ends the call (`end`), and no other."""

    def end(self, finish: Finish) -> None:
        """The whole call is over, whatever its choices had: the engine is gone, or push raised."""

    def wake(self) -> None:
        """The engine's step is over: what was pushed may be sent."""


class _Entry:
    """A job under way: its sink, and which choice of the call the job's choice 0 is."""

    __slots__ = ("base", "choices", "job", "open", "sink", "tokens")

    def __init__(self, job: str, sink: Sink, base: int, choices: int) -> None:
        self.job, self.sink, self.base, self.choices = job, sink, base, choices
        self.open = choices
        self.tokens = 0  # Received since credit was last given back; counted for parts alone.


@final
class Dispatcher:
    """Owns the reading of one engine. `start` it in the loop that will use it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._card = engine.status().card
        self._name = name
        self._entries: dict[str, _Entry] = {}
        self._jobs: dict[str, tuple[str, ...]] = {}  # Call id -> the engine's job ids.
        self._task: asyncio.Task[None] | None = None
        self._lost = ""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(
            self._read(), name=f"tokenwire engine {self._name}"
        )

    def status(self) -> EngineStatus:
        status = self._engine.status()
        if self._lost:
            return replace(status, ready=False, reason=self._lost)
        return status

    @property
    def card(self) -> EngineCard:
        """What the engine said of itself when it joined."""
        return self._card

    def submit(self, job: TokenJob, sink: Sink, more: Sequence[TokenJob] = ()) -> None:
        """Send a call's job, and those of its other prompts, whose choices come after; all go by
        the first one's id. An engine without `n` gets n jobs, seeded as the choices would be."""
        if self._lost or self._task is None:
            sink.end(LOST)
            return
        parts = self._parts(job)
        if more:
            jobs = (job, *more)
            named = [replace(each, job=f"{job.job}.p{k}") for k, each in enumerate(jobs)]
            bases = [0, *accumulate(each.n for each in named)]
            parts = [
                (base + own, part)
                for base, each in zip(bases, named, strict=False)
                for own, part in self._parts(each)
            ]
        for base, part in parts:
            self._entries[part.job] = _Entry(job.job, sink, base, part.n)
        self._jobs[job.job] = tuple(part.job for _, part in parts)
        self._engine.submit([part for _, part in parts])

    def abort(self, job: str, choice: int | None, reason: AbortReason) -> None:
        """Tell the engine now. A job that is over is no error."""
        parts = self._jobs.get(job, ())
        frames: list[Abort] = []
        for part in parts:
            entry = self._entries.get(part)
            if entry is None:
                continue
            if choice is None:
                frames.append(Abort(part, None, reason))
            elif entry.base <= choice < entry.base + entry.choices:
                frames.append(Abort(part, choice - entry.base, reason))
        if frames:
            self._engine.control(frames)

    def credit(self, job: str, tokens: int) -> None:
        """The client took all there was: `tokens` more of the call, over all of its parts."""
        parts = self._jobs.get(job, ())
        if len(parts) == 1:
            self._engine.control([Credit(parts[0], tokens)])
            return
        frames: list[Credit] = []
        for part in parts:
            entry = self._entries.get(part)
            if entry is not None and entry.tokens:
                frames.append(Credit(part, entry.tokens))
                entry.tokens = 0
        if frames:
            self._engine.control(frames)

    def forget(self, job: str) -> None:
        """No delta of this job is wanted any more (it was aborted, or failed here)."""
        for part in self._jobs.pop(job, ()):
            self._entries.pop(part, None)

    async def drain(self, timeout_s: float) -> None:
        await self._engine.drain(timeout_s)
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout_s + 5.0)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _parts(self, job: TokenJob) -> Sequence[tuple[int, TokenJob]]:
        return _split(job) if job.n > 1 and not self._card.can("n") else ((0, job),)

    async def _read(self) -> None:
        try:
            async for batch in self._engine.batches():
                self._hand_out(batch)
            self._lose("the engine has stopped")
        except asyncio.CancelledError:
            self._lose("the engine has stopped")
            raise
        except Exception:
            log.exception("engine %s died", self._name)
            self._lose("the engine died; see the log")

    def _hand_out(self, batch: Sequence[TokenDelta]) -> None:
        entries = self._entries
        touched: list[Sink] = []
        last: Sink | None = None
        for delta in batch:
            entry = entries.get(delta.job)
            if entry is None:
                continue  # Why: aborted here, and its last delta was under way.
            sink = entry.sink
            if delta.job != entry.job:
                entry.tokens += len(delta.ids)
                delta = replace(delta, choice=delta.choice + entry.base)  # noqa: PLW2901
            try:
                sink.push(delta)
            except Exception:
                log.exception("job %s: delta failed", entry.job)
                self.break_off(entry.job)
                continue
            if sink is not last:
                touched.append(sink)
                last = sink
            if delta.finish is not None:
                self._close(delta.job, entry)
        for sink in touched:
            sink.wake()

    def _close(self, part: str, entry: _Entry) -> None:
        entry.open -= 1
        if entry.open == 0:
            self._entries.pop(part, None)
            if not any(other in self._entries for other in self._jobs.get(entry.job, ())):
                self._jobs.pop(entry.job, None)

    def break_off(self, job: str) -> None:
        """A bug on our side of the seam: end this call alone, and free the engine."""
        entries = (self._entries.get(part) for part in self._jobs.get(job, ()))
        sinks = {entry.sink for entry in entries if entry is not None}
        self.abort(job, None, AbortReason.CLIENT)
        self.forget(job)
        for sink in sinks:
            sink.end(BROKEN)

    def _lose(self, why: str) -> None:
        self._lost = why
        entries, self._entries = self._entries, {}
        self._jobs.clear()
        # Why once each: a call may have several parts, and is over when one of them is lost.
        for sink in dict.fromkeys(entry.sink for entry in entries.values()):
            sink.end(LOST)


def _split(job: TokenJob) -> tuple[tuple[int, TokenJob], ...]:
    return tuple(
        (
            choice,
            replace(
                job,
                job=f"{job.job}.{choice}",
                n=1,
                credit=None if job.credit is None else max(1, job.credit // job.n),
                sampling=replace(job.sampling, seed=seeds.mix(job.sampling.seed, choice)),
            ),
        )
        for choice in range(job.n)
    )
