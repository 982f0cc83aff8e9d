"""The mock engine: one step for all running choices per turn of the event loop. Knows no text.

There is no task and no queue for a job: the reader of `batches` drives the engine, and a step costs
a few hundred nanoseconds for each running choice. Time comes from the event loop alone.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import AsyncIterator
from collections.abc import Sequence as Many
from typing import final

from tokenwire.core.job_check import refusal, refused
from tokenwire.core.job_log import describe
from tokenwire.core.ports.engine import Engine
from tokenwire.core.progress import Progress
from tokenwire.core.script import Script
from tokenwire.core.scripts import ScriptBook
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Abort,
    Control,
    Counts,
    Credit,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    KvEvent,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.mock.choice import Choice, fault
from tokenwire.plugins.engines.mock.faults import read_faults
from tokenwire.plugins.engines.mock.feed import BlockFeed
from tokenwire.plugins.engines.mock.lines import Repertoire
from tokenwire.plugins.engines.mock.scheduler import Scheduler
from tokenwire.plugins.engines.mock.sequence import Buffered, JobState, Sequence
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
        self._repertoire = repertoire
        self._scripts = scripts
        self._feed = BlockFeed()
        self._scheduler = Scheduler(settings, card, self._feed)
        self._jobs: dict[str, JobState] = {}
        self._out: list[TokenDelta] = []
        """What goes with the next step: refusals and aborts."""
        self._deadlines: list[tuple[float, int, JobState]] = []
        self._away_until = 0.0
        self._order = 0
        self._is_draining = False
        self._is_read = False
        self._wake = asyncio.Event()
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
                self._refuse(job, finish)
        self._wake.set()

    def control(self, frames: Many[Control]) -> None:
        for frame in frames:
            match frame:
                case Abort():
                    self._abort(frame.job, frame.choice, FinishCause(frame.reason.value))
                case Credit():
                    self._credit(frame.job, frame.tokens)
                case _:
                    # A release names a hand-over, and this engine has none.
                    pass
        self._wake.set()

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
                    await self._sleep(loop, self._next_due() - now)
        finally:
            self._idle.set()
            self._ended.set()
            self._feed.close()

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
            self._wake.set()
            if self._is_read and not self._ended.is_set():
                await _within(self._idle, timeout_s)
            for name in tuple(self._jobs):
                self._abort(name, None, FinishCause.DRAIN)
            self._wake.set()
            if self._is_read:
                await _within(self._ended, GRACE_S)
            self._ended.set()
            self._feed.close()
        await self._ended.wait()

    # --- taking jobs ---

    def _refusal(self, job: TokenJob) -> Finish | None:
        if self._is_draining:
            return refused("the engine is draining", retryable=True)
        if self._is_away():
            return refused("the engine is disconnected", FinishCause.LOST, retryable=True)
        finish = refusal(job, self._card)
        if finish is not None:
            return finish
        if job.job in self._jobs:
            return refused("a job of this name is running")
        waiting = self._scheduler.waiting
        if waiting + job.n > self._settings.max_waiting + self._scheduler.slots:
            message = f"{waiting} choices are waiting already"
            return refused(message, FinishCause.OVERLOADED, retryable=True)
        return self._script_refusal(job)

    def _script_refusal(self, job: TokenJob) -> Finish | None:
        if "script" not in job.annotations:
            return None
        script = self._script(job)
        if script is None:
            return refused("the script that the job names is not loaded")
        highest = max((token.id for token in script.tokens), default=0)
        if highest >= self._card.vocab_size:
            return refused("a script needs the model's tokenizer to be `script`")
        return None

    def _script(self, job: TokenJob) -> Script | None:
        name = job.annotations.get("script")
        return None if name is None or self._scripts is None else self._scripts.get(name)

    def _refuse(self, job: TokenJob, finish: Finish) -> None:
        at = len(job.resume_ids)
        counts = Counts(prompt=len(job.prompt), generated=at)
        for index in range(max(job.n, 1)):
            self._out.append(
                TokenDelta(job.job, at, job.attempt, index, counts=counts, finish=finish)
            )

    def _take(self, job: TokenJob) -> None:
        try:
            state = JobState(job, read_faults(self._settings, job.annotations))
        except ValueError as error:
            self._refuse(job, refused(f"annotations mock.*: {error}"))
            return
        self._jobs[job.job] = state
        for index in range(job.n):
            self._order += 1
            sequence = Sequence(state, index, self._choice(job, index), self._order)
            state.sequences.append(sequence)
            if sequence.choice.finish is None:
                self._scheduler.wait(sequence)
            else:
                self._send(sequence, NO_IDS, sequence.choice.finish)
        if job.deadline_ms is not None:
            due = asyncio.get_running_loop().time() + job.deadline_ms / 1000
            heapq.heappush(self._deadlines, (due, self._order, state))

    def _choice(self, job: TokenJob, index: int) -> Choice:
        card, script = self._card, self._script(job)
        if script is not None:
            lines = self._repertoire.scripted(script, index)
        else:
            reasoning = job.reasoning
            thinks = reasoning is not None and reasoning.open
            lines = self._repertoire.answer(reasoning.end_ids if reasoning and thinks else NO_IDS)
        return Choice(
            job,
            lines,
            Progress(job, eos_ids=card.eos_ids, context_length=card.context_length),
            likely=self._repertoire.likely,
            vocab_size=card.vocab_size,
        )

    # --- one step ---

    def _step(self, now: float) -> bool:
        """Move every running choice that is due; whether any moved."""
        scheduler = self._scheduler
        while self._deadlines and self._deadlines[0][0] <= now:
            state = heapq.heappop(self._deadlines)[2]
            self._finish(state, state.sequences, Finish(FinishKind.ABORT, FinishCause.DEADLINE))
        if scheduler.waiting:
            scheduler.admit(now)
        pause = self._settings.token_ms / 1000
        has_moved = False
        for sequence in tuple(scheduler.running.values()):
            if sequence.due > now or sequence.is_blocked or sequence.order not in scheduler.running:
                continue
            has_moved = True
            choice = sequence.choice
            if len(choice.output) >= sequence.capacity and not scheduler.extend(sequence):
                continue
            if sequence.state.faults is not None and self._fails(sequence, now):
                continue
            ids = choice.step()
            sequence.due = now + pause + choice.pause_s
            self._deliver(sequence, ids, choice.finish, choice.is_forced)
        return has_moved

    def _fails(self, sequence: Sequence, now: float) -> bool:
        """Whether a fault struck instead of a step."""
        faults, made = sequence.state.faults, len(sequence.choice.output)
        assert faults is not None
        if faults.error_at is not None and made >= faults.error_at:
            self._deliver(sequence, NO_IDS, fault(faults.error_cause, "an injected error"))
            return True
        if faults.disconnect_at is not None and made >= faults.disconnect_at:
            self._disconnect(now)
            return True
        if faults.stall_at is not None and made >= faults.stall_at:
            sequence.due = math.inf
            return True
        return False

    def _disconnect(self, now: float) -> None:
        self._away_until = now + self._settings.disconnect_ms / 1000
        for state in tuple(self._jobs.values()):
            self._finish(state, state.sequences, fault("lost", "an injected disconnect"))

    def _is_away(self) -> bool:
        return self._away_until > 0 and asyncio.get_running_loop().time() < self._away_until

    # --- what goes out ---

    def _deliver(
        self, sequence: Sequence, ids: TokenIds, finish: Finish | None, is_forced: bool = False
    ) -> None:
        if finish is not None:
            self._scheduler.release(sequence)
        buffered = sequence.buffered
        if buffered is None:
            if ids or finish is not None:
                self._send(sequence, ids, finish, is_forced)
            return
        buffered.ids.extend(ids)
        buffered.forced.extend(bytes((is_forced,)) * len(ids))
        buffered.finish = finish
        self._flush(sequence, buffered)

    def _flush(self, sequence: Sequence, buffered: Buffered) -> None:
        """Send what the job's credit allows."""
        state = sequence.state
        assert state.credit is not None
        while buffered.ids and state.credit > 0:
            is_forced = buffered.forced[0]
            other = buffered.forced.find(not is_forced)
            run = min(len(buffered.ids) if other < 0 else other, state.credit)
            ids = TokenIds(buffered.ids[:run])
            del buffered.ids[:run], buffered.forced[:run]
            state.credit -= run
            is_last = not buffered.ids
            self._send(sequence, ids, buffered.finish if is_last else None, bool(is_forced))
        if not buffered.ids and buffered.finish is not None and not sequence.is_over:
            self._send(sequence, NO_IDS, buffered.finish)
        sequence.is_blocked = len(buffered.ids) >= self._card.credit_cap

    def _send(
        self,
        sequence: Sequence,
        ids: TokenIds,
        finish: Finish | None,
        is_forced: bool = False,
    ) -> None:
        job, at = sequence.state.job, sequence.at
        sequence.at = at + len(ids)
        if sequence.is_started and finish is None and job.logprobs is None:
            delta = TokenDelta(job.job, at, job.attempt, sequence.index, ids, forced=is_forced)
        else:
            delta = self._full_delta(sequence, at, ids, finish, is_forced)
        self._out.append(delta)
        if finish is not None:
            self._forget(sequence)

    def _full_delta(
        self, sequence: Sequence, at: int, ids: TokenIds, finish: Finish | None, is_forced: bool
    ) -> TokenDelta:
        """A choice's first or last delta, or one with logprobs."""
        job, choice, asked = sequence.state.job, sequence.choice, sequence.state.job.logprobs
        is_first, sequence.is_started = not sequence.is_started, True
        with_prompt = is_first and asked is not None and asked.prompt is not None
        return TokenDelta(
            job.job,
            at,
            job.attempt,
            sequence.index,
            ids,
            logprobs=() if asked is None else tuple(choice.logprobs(ids, at, asked)),
            prompt_logprobs=choice.prompt_logprobs(asked) if with_prompt and asked else None,
            forced=is_forced,
            counts=self._counts(sequence) if is_first or finish is not None else None,
            finish=finish,
        )

    def _counts(self, sequence: Sequence) -> Counts:
        prompt, cached = len(sequence.state.job.prompt), sequence.state.cached
        return Counts(
            prompt=prompt,
            cached=cached or 0,
            computed=0 if cached is None else prompt - cached,
            generated=sequence.at,
        )

    # --- ends ---

    def _abort(self, name: str, index: int | None, cause: FinishCause) -> None:
        state = self._jobs.get(name)
        if state is None:
            return
        chosen = [each for each in state.sequences if index is None or each.index == index]
        self._finish(state, chosen, Finish(FinishKind.ABORT, cause))

    def _finish(self, state: JobState, sequences: Many[Sequence], finish: Finish) -> None:
        """End them now; what they made and did not send is dropped."""
        for sequence in sequences:
            if not sequence.is_over:
                self._scheduler.release(sequence)
                self._send(sequence, NO_IDS, finish)

    def _forget(self, sequence: Sequence) -> None:
        sequence.is_over = True
        state = sequence.state
        state.live -= 1
        if not state.live:
            del self._jobs[state.job.job]

    def _credit(self, name: str, tokens: int) -> None:
        state = self._jobs.get(name)
        if state is None or state.credit is None:
            return
        state.credit += max(tokens, 0)
        for sequence in state.sequences:
            if sequence.buffered is not None and not sequence.is_over:
                self._flush(sequence, sequence.buffered)

    # --- waiting ---

    def _next_due(self) -> float:
        due = min(
            (each.due for each in self._scheduler.running.values() if not each.is_blocked),
            default=math.inf,
        )
        return min(due, self._deadlines[0][0]) if self._deadlines else due

    async def _sleep(self, loop: asyncio.AbstractEventLoop, delay: float) -> None:
        """Until something is submitted or controlled, or `delay` seconds at most."""
        self._wake.clear()
        timer = None if delay == math.inf else loop.call_later(delay, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()


async def _within(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for it, that long at most."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
