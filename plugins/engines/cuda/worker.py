"""The engine's loop in its own thread: intake, schedule, launch, results, deltas. Knows no socket.

One step after another; where steps overlap, a step is scheduled and launched while the one before
runs, and its results are read one turn later. Everything about a job's life is seen by this thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias, final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Send, Worker
from tokenwire.core.tokens import (
    Abort,
    Control,
    Credit,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    IdLogprobs,
    KvEvent,
    Release,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.choice import Choice, Task
from tokenwire.plugins.engines.cuda.constrained import Grammars
from tokenwire.plugins.engines.cuda.drafts import propose
from tokenwire.plugins.engines.cuda.feed import KvFeed
from tokenwire.plugins.engines.cuda.jobs import Compiled, Jobs
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence as Run
from tokenwire.plugins.engines.cuda.runner import Results, Runner, Step
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.wishes import Wishes, choice_of

__all__ = ("CudaWorker",)

LOG = logging.getLogger("tokenwire.engine.cuda")

Message: TypeAlias = "tuple[TokenJob, float | None] | Control | Compiled"


def _nowhere(batch: tuple[TokenDelta, ...]) -> None:
    """Before the start there is nobody to send to."""


@final
class CudaWorker(Worker):
    def __init__(
        self,
        card: EngineCard,
        settings: CudaSettings,
        scheduler: Scheduler,
        runner: Runner,
        *,
        grammars: Grammars | None = None,
        adapters: Sequence[str] = (),
        overlap: bool = False,
    ) -> None:
        """`adapters`: names, in the order of their slots, which begin at 1."""
        self._card = card
        self._settings = settings
        self._scheduler = scheduler
        self._runner = runner
        self._grammars = grammars
        self._overlap = overlap
        kv = scheduler.kv
        self._feed = KvFeed(kv.log, kv.snapshot)
        self._speculation = settings.speculation
        self._jobs = Jobs(
            card,
            scheduler,
            runner.rows,
            self._arrive,
            grammars=grammars,
            adapters={name: slot for slot, name in enumerate(adapters, start=1)},
            reads_cache=settings.prefix_cache,
            drafts=settings.speculation is not None,
        )
        self._send: Send = _nowhere
        self._inbox: deque[Message] = deque()
        self._something = threading.Event()
        self._is_stopping = False
        self._broken = ""
        self._flying: deque[tuple[Step, Wishes]] = deque()
        self._thread = threading.Thread(target=self._run, name="tokenwire-cuda", daemon=True)

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        now = time.monotonic()
        for job in jobs:
            due = None if job.deadline_ms is None else now + job.deadline_ms / 1000
            self._inbox.append((job, due))
        self._something.set()

    def control(self, frames: Sequence[Control]) -> None:
        self._inbox.extend(frames)
        self._something.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._something.set()

    def refusal(self, job: TokenJob) -> Finish | None:
        if self._broken:
            return refused(self._broken, FinishCause.LOST, retryable=True)
        return None

    def status(self) -> EngineStatus:
        found = self._scheduler.status()
        return EngineStatus(
            card=self._card,
            ready=not self._broken,
            reason=self._broken,
            running=found.running,
            waiting=found.waiting,
            kv_blocks_total=found.blocks_total,
            kv_blocks_free=found.blocks_free + found.blocks_evictable,
        )

    def events(self) -> AsyncIterator[KvEvent]:
        return self._feed.read(self._something.set)

    # Everything below runs in the thread

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._something.clear()
                has_moved = self._turn()
                self._feed.pump()
                self._flush()
                if not has_moved and not self._inbox:
                    self._something.wait(self._until_deadline())
            self._end_all(Finish(FinishKind.ABORT, FinishCause.DRAIN))
        except Exception as error:
            # Why: a bug here must not leave clients waiting for ever, nor /ready lying.
            LOG.exception("the engine's loop failed")
            self._broken = f"its loop failed: {type(error).__name__}"
            message = "the engine's loop failed"
            self._end_all(
                Finish(FinishKind.ERROR, FinishCause.LOST, retryable=True, message=message)
            )
            self._refuse_arrivals()
        self._feed.close()
        if self._grammars is not None:
            self._grammars.close()

    def _turn(self) -> bool:
        """One turn of the loop; whether it did anything."""
        self._read()
        now = time.monotonic()
        for seq in self._scheduler.expired(now):
            assert isinstance(seq.owner, Choice)
            self._jobs.finish(seq.owner, Finish(FinishKind.ABORT, FinishCause.DEADLINE))
        plan = self._scheduler.schedule(now)
        for seq in plan.preempted:
            self._runner.rows.forget(seq)
        if plan.rows:
            self._launch(plan.rows, plan.decode_rows)
        ahead = 1 if self._overlap and plan.rows else 0
        has_retired = len(self._flying) > ahead
        while len(self._flying) > ahead:
            self._retire(*self._flying.popleft())
        return bool(plan.rows) or has_retired

    def _flush(self) -> None:
        if self._jobs.out:
            batch, self._jobs.out = tuple(self._jobs.out), []
            self._send(batch)

    # --- steps ------------------------------------------------------------------------------

    def _launch(self, rows: Sequence[Row], decode_rows: int) -> None:
        held = self._runner.rows
        for row in rows:
            if not held.has(row.seq):
                task = choice_of(row).task
                held.take(row.seq, task.job.sampling, task.adapter)
        wishes = Wishes(rows)
        try:
            step = self._runner.launch(rows, decode_rows, wishes.asked())
        except Exception as error:
            step = Step.failed(rows, error)
        self._flying.append((step, wishes))

    def _retire(self, step: Step, wishes: Wishes) -> None:
        try:
            results = step.results()
        except Exception as error:
            self._isolate(step, error)
            return
        self._bring(step.rows, results, wishes)

    def _bring(self, rows: Sequence[Row], results: Results, wishes: Wishes) -> None:
        ids = results.ids
        scores = {}
        if not wishes.is_empty:
            scores = wishes.read(results)
            wishes.keep_prompts(results)
        at = 0
        for row in rows:
            count = 1 + len(row.drafts) if row.samples else 0
            if row.epoch != row.seq.epoch or not count:
                self._scheduler.retire(row)
            elif not all(results.is_sound[at : at + count]):
                self._poisoned(row)
            else:
                mine = [scores[place] for place in range(at, at + count) if place in scores]
                self._take(row, ids[at : at + count], mine)
            at += count

    def _take(self, row: Row, ids: list[int], scores: list[IdLogprobs]) -> None:
        """`ids`: one after the last known id, and one after each draft."""
        taken = 1
        for draft in row.drafts:
            if ids[taken - 1] != draft:
                break
            taken += 1
        choice = choice_of(row)
        count = choice.take(ids[:taken], scores, self._jobs.out)
        self._scheduler.retire(row, ids[:count])
        if choice.progress.finish is not None:
            self._jobs.over(choice)
        elif choice.outlet.is_blocked:
            self._runner.rows.forget(row.seq)
            self._scheduler.park(row.seq)
        elif self._speculation is not None:
            self._draft(choice, row.seq)

    def _draft(self, choice: Choice, seq: Run) -> None:
        settings = self._speculation
        if settings is None or choice.needs_feedback:
            return
        left = seq.max_tokens - len(seq.tokens) - 1
        seq.drafts = propose(seq.tokens, settings, left)

    def _isolate(self, step: Step, error: Exception) -> None:
        """A step failed: run each of its rows alone, so that only those end that fail alone.

        That is safe: KV is written to the same slots, and draws depend on nothing but the row."""
        LOG.warning("a step of %d rows failed, each is run alone: %s", len(step.rows), error)
        self._runner.recover()
        failed = 0
        for row in step.rows:
            if row.epoch != row.seq.epoch:
                self._scheduler.retire(row)
                continue
            wishes = Wishes((row,))
            try:
                alone = self._runner.launch((row,), int(row.count == 1), wishes.asked())
                results = alone.results()
            except Exception as cause:
                LOG.exception("a row failed alone")
                failed += 1
                self._runner.recover()
                self._fail(row, f"{type(cause).__name__} in a step")
            else:
                self._bring((row,), results, wishes)
        if failed and not self._runner.is_alive():
            self._broken = f"the device is lost: {type(error).__name__}: {error}"
            raise error

    def _poisoned(self, row: Row) -> None:
        LOG.error("job %s: the network gave NaN or infinity", choice_of(row).task.job.job)
        self._fail(row, "the network gave NaN or infinity")

    def _fail(self, row: Row, message: str) -> None:
        choice = choice_of(row)
        cause = Finish(FinishKind.ERROR, FinishCause.INTERNAL, retryable=True, message=message)
        self._scheduler.forget(row.seq)
        self._jobs.finish(choice, cause)
        self._scheduler.retire(row)

    # --- messages ---------------------------------------------------------------------------

    def _read(self) -> None:
        jobs = self._jobs
        while self._inbox:
            match self._inbox.popleft():
                case (TokenJob() as job, deadline):
                    jobs.take(job, deadline)
                case (Task() as task, future):
                    jobs.begin_constrained(task, future)
                case Abort() as abort:
                    jobs.abort(abort)
                case Credit() as credit:
                    jobs.add_credit(credit)
                case Release():
                    # It names a hand-over, and this engine has none.
                    pass

    def _arrive(self, compiled: Compiled) -> None:
        """From a compiling thread."""
        self._inbox.append(compiled)
        self._something.set()

    def _end_all(self, finish: Finish) -> None:
        self._jobs.finish_everything(finish)
        self._flying.clear()
        self._flush()

    def _refuse_arrivals(self) -> None:
        """After the loop failed: nobody may wait for an answer."""
        while not self._is_stopping:
            self._something.wait()
            self._something.clear()
            while self._inbox:
                match self._inbox.popleft():
                    case (TokenJob() as job, _):
                        finish = refused(self._broken, FinishCause.LOST, retryable=True)
                        self._jobs.out += refusals(job, finish)
                    case _:
                        pass
            self._flush()

    def _until_deadline(self) -> float | None:
        due = self._jobs.next_deadline()
        return None if due is None else max(due - time.monotonic(), 0.0)
