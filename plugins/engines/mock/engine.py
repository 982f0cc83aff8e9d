"""The mock engine: one step for all running choices per turn of the event loop. Knows no text.

There is no task and no queue for a job: the reader of `batches` drives the engine, and a step costs
about a microsecond for each running choice. Time comes from the event loop alone.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import AsyncIterator, Iterable
from collections.abc import Sequence as Many
from typing import final

from tokenwire.core.job_check import refused
from tokenwire.core.job_log import describe
from tokenwire.core.outlet import refusals
from tokenwire.core.ports.engine import Engine
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Abort,
    Control,
    Credit,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    KvEvent,
    Release,
    TokenDelta,
    TokenJob,
)
from tokenwire.core.waits import Alarm, within
from tokenwire.plugins.engines.mock.choice import fault
from tokenwire.plugins.engines.mock.embedding import embedded
from tokenwire.plugins.engines.mock.faults import Faults
from tokenwire.plugins.engines.mock.feed import BlockFeed
from tokenwire.plugins.engines.mock.intake import Intake
from tokenwire.plugins.engines.mock.lines import Repertoire
from tokenwire.plugins.engines.mock.scheduler import Scheduler
from tokenwire.plugins.engines.mock.sequence import JobState, Sequence
from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("MockEngine",)

LOG = logging.getLogger("tokenwire.engine.mock")
GRACE_S = 1.0
"""How long a drained engine waits for its reader to take the last batch."""


@final
class MockEngine(Engine):
    def __init__(
        self,
        settings: MockSettings,
        card: EngineCard,
        repertoire: Repertoire,
        scripts: ScriptBook | None,
    ) -> None:
        self._settings = settings
        self._card = card
        self._feed = BlockFeed()
        self._intake = Intake(settings, card, repertoire, scripts)
        self._scheduler = Scheduler(settings, card, self._feed)
        self._out: list[TokenDelta] = []
        """What goes with the next batch."""
        self._jobs: dict[str, JobState] = {}
        self._deadlines: list[tuple[float, int, JobState]] = []
        self._away_until = 0.0
        self._is_draining = False
        self._is_read = False
        self._alarm = Alarm()
        self._idle = asyncio.Event()
        self._ended = asyncio.Event()

    def submit(self, jobs: Many[TokenJob]) -> None:
        for job in jobs:
            if LOG.isEnabledFor(logging.DEBUG):
                LOG.debug("received %s", describe(job))
            finish = self._refusal(job)
            if finish is None:
                self._take(job)
            else:
                self._out.extend(refusals(job, finish))
        self._alarm.ring()

    def control(self, frames: Many[Control]) -> None:
        for frame in frames:
            state = None if isinstance(frame, Release) else self._jobs.get(frame.job)
            if state is None:
                continue
            match frame:
                case Abort():
                    finish = Finish(FinishKind.ABORT, FinishCause(frame.reason.value))
                    self._end(state, finish, frame.choice)
                case Credit():
                    self._add_credit(state, frame.tokens)
        self._alarm.ring()

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        if self._is_read:
            raise RuntimeError("batches() has one reader, and it is reading already")
        self._is_read = True
        loop = asyncio.get_running_loop()
        try:
            while True:
                now = loop.time()
                has_moved = self._step(now)
                if self._out:
                    batch, self._out = tuple(self._out), []
                    yield batch
                    await asyncio.sleep(0)
                elif has_moved:
                    await asyncio.sleep(0)
                else:
                    if not self._jobs:
                        self._idle.set()
                        if self._is_draining:
                            return
                    await self._alarm.sleep(self._next_due() - now)
        finally:
            self._shut()

    def events(self) -> AsyncIterator[KvEvent]:
        return self._feed.read(self._scheduler.hashes)

    def status(self) -> EngineStatus:
        scheduler = self._scheduler
        reason = ""
        if self._ended.is_set():
            reason = "it was shut down"
        elif self._is_draining:
            reason = "it is draining"
        elif self._is_away():
            reason = "it is disconnected"
        return EngineStatus(
            card=self._card,
            ready=not reason,
            reason=reason,
            running=len(scheduler.running),
            waiting=scheduler.waiting,
            kv_blocks_total=scheduler.blocks_total,
            kv_blocks_free=scheduler.blocks_free,
            draining=self._is_draining,
        )

    async def drain(self, timeout_s: float) -> None:
        if not self._is_draining:
            self._is_draining = True
            self._idle.clear()
            self._alarm.ring()
            if self._is_read and not self._ended.is_set():
                await within(self._idle, timeout_s)
            for state in tuple(self._jobs.values()):
                self._end(state, Finish(FinishKind.ABORT, FinishCause.DRAIN))
            self._alarm.ring()
            if self._is_read:
                await within(self._ended, GRACE_S)
            self._shut()
        await self._ended.wait()

    def _refusal(self, job: TokenJob) -> Finish | None:
        if self._is_draining:
            return refused("the engine is draining", retryable=True)
        if self._is_away():
            return refused("the engine is disconnected", FinishCause.LOST, retryable=True)
        if job.job in self._jobs:
            return refused("a job of this name is running")
        finish = self._intake.refusal(job)
        if finish is not None:
            return finish
        waiting = self._scheduler.waiting
        if waiting + job.n > self._settings.max_waiting + self._scheduler.slots:
            message = f"{waiting} choices are waiting already"
            return refused(message, FinishCause.OVERLOADED, retryable=True)
        return None

    def _take(self, job: TokenJob) -> None:
        if job.task == "embed":
            self._out += embedded(job, self._settings.embedding_size)
            return
        state = self._jobs[job.job] = self._intake.take(job)
        for sequence in state.sequences:
            if sequence.choice.finish is None:
                self._scheduler.wait(sequence)
            else:
                self._send(sequence, sequence.outlet.end(sequence.choice.finish))
        if job.deadline_ms is not None and state.live:
            due = asyncio.get_running_loop().time() + job.deadline_ms / 1000
            heapq.heappush(self._deadlines, (due, state.sequences[0].order, state))

    def _step(self, now: float) -> bool:
        """Move every running choice that is due; whether any moved."""
        scheduler = self._scheduler
        while self._deadlines and self._deadlines[0][0] <= now:
            state = heapq.heappop(self._deadlines)[2]
            self._end(state, Finish(FinishKind.ABORT, FinishCause.DEADLINE))
        if scheduler.waiting:
            scheduler.admit(now)
        pause, out = self._settings.token_ms / 1000, self._out
        has_moved = False
        for sequence in tuple(scheduler.running.values()):
            outlet = sequence.outlet
            if sequence.due > now or outlet.is_blocked:
                continue
            choice = sequence.choice
            if len(choice.output) >= sequence.capacity and not self._has_room(sequence):
                continue
            has_moved = True
            faults = sequence.state.faults
            if faults is not None and self._fails(sequence, faults, now):
                continue
            ids = choice.step()
            if pause or choice.pause_s:
                sequence.due = now + pause + choice.pause_s
            # Why first: so go nineteen steps in twenty.
            if choice.finish is None and not choice.is_forced and sequence.state.is_plain:
                delta = outlet.plain(ids)
                if delta is not None:
                    out.append(delta)
                    continue
            self._deliver(sequence, ids, choice.finish)
        return has_moved

    def _deliver(self, sequence: Sequence, ids: TokenIds, finish: Finish | None) -> None:
        choice, outlet, asked = sequence.choice, sequence.outlet, sequence.state.job.logprobs
        logprobs = () if asked is None else choice.logprobs(ids, outlet.made, asked)
        if not outlet.is_started:
            outlet.counts = sequence.state.counts()
        if finish is not None:
            self._scheduler.release(sequence)
        self._send(
            sequence,
            outlet.put(ids, finish=finish, is_forced=choice.is_forced, logprobs=logprobs),
        )

    def _has_room(self, sequence: Sequence) -> bool:
        """Whether it still runs and has a block for its next token."""
        running = self._scheduler.running
        return sequence.order in running and self._scheduler.extend(sequence)

    def _fails(self, sequence: Sequence, faults: Faults, now: float) -> bool:
        """Whether a fault struck instead of a step."""
        struck = faults.strike(len(sequence.choice.output))
        if struck == "error":
            finish = fault(faults.error_cause, "an injected error")
            self._end(sequence.state, finish, sequence.index)
        elif struck == "disconnect":
            self._away_until = now + self._settings.disconnect_ms / 1000
            for state in tuple(self._jobs.values()):
                self._end(state, fault("lost", "an injected disconnect"))
        elif struck == "stall":
            sequence.due = math.inf
        return struck is not None

    def _end(self, state: JobState, finish: Finish, choice: int | None = None) -> None:
        """End the job's choices, or one; those that are over stay as they are."""
        chosen: Iterable[Sequence] = state.sequences
        if choice is not None:
            chosen = state.sequences[choice : choice + 1] if choice >= 0 else ()
        for sequence in chosen:
            if not sequence.outlet.is_over:
                self._scheduler.release(sequence)
                sequence.outlet.counts = state.counts()
                self._send(sequence, sequence.outlet.end(finish))

    def _send(self, sequence: Sequence, deltas: Many[TokenDelta]) -> None:
        self._out.extend(deltas)
        state = sequence.state
        if sequence.outlet.is_over and deltas:
            state.live -= 1
            if not state.live:
                del self._jobs[state.job.job]

    def _add_credit(self, state: JobState, tokens: int) -> None:
        state.allowance.add(tokens)
        for sequence in state.sequences:
            self._send(sequence, sequence.outlet.flush())

    def _is_away(self) -> bool:
        return self._away_until > 0 and asyncio.get_running_loop().time() < self._away_until

    def _next_due(self) -> float:
        due = min(
            (each.due for each in self._scheduler.running.values() if not each.outlet.is_blocked),
            default=math.inf,
        )
        return min(due, self._deadlines[0][0]) if self._deadlines else due

    def _shut(self) -> None:
        self._is_draining = True
        self._idle.set()
        self._ended.set()
        self._feed.close()
