"""The engine's loop in its own thread: intake, schedule, launch, results, deltas. Knows no socket.

One step after another; where steps overlap, a step is scheduled and launched while the one before
runs, and its results are read one turn later. Everything about a job's life is seen by this thread.

Argues its length: a thread's whole life, from its first message to its last, in one place.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeAlias, final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Inbox, Send, Worker, nowhere
from tokenwire.core.tokens import (
    Abort,
    Control,
    Credit,
    EngineCard,
    EngineStatus,
    Figure,
    Finish,
    FinishCause,
    FinishKind,
    KvEvent,
    Release,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.choice import Choice, Task
from tokenwire.plugins.engines.cuda.constrained import Grammars
from tokenwire.plugins.engines.cuda.feed import KvFeed
from tokenwire.plugins.engines.cuda.jobs import Compiled, Jobs
from tokenwire.plugins.engines.cuda.meters import Meters
from tokenwire.plugins.engines.cuda.parallel.lockstep import Lockstep
from tokenwire.plugins.engines.cuda.policy.lockstep import Agreement, Wake
from tokenwire.plugins.engines.cuda.policy.plan import Plan
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.runner import Runner
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.steps import DeviceLost, Steps
from tokenwire.plugins.engines.cuda.trace import LOOP, Trace

__all__ = ("CudaWorker", "MoreFigures")

LOG = logging.getLogger("tokenwire.engine.cuda")

MoreFigures: TypeAlias = Callable[[], Sequence[Figure]]
Message: TypeAlias = "tuple[TokenJob, float | None, float] | Control | Compiled | Wake"
"""A job with its deadline and its arrival; or what concerns one; or word of others' jobs."""


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
        about: Mapping[str, str | int | float] | None = None,
        trace: Trace | None = None,
        lockstep: Lockstep | None = None,
        figures: MoreFigures | None = None,
    ) -> None:
        """`adapters`: names, in the order of their slots, which begin at 1. `about`: for status.
        `lockstep`: with the other parts of a group, where this is one. `figures`: what else is to
        be told in status, from any thread."""
        self._figures = figures
        self._lockstep = lockstep
        self._card = card
        self._about = about or {}
        self._scheduler = scheduler
        self._runner = runner
        self._grammars = grammars
        self._overlap = overlap
        kv = scheduler.kv
        self._feed = KvFeed(kv.log, kv.snapshot)
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
        self._send: Send = nowhere
        self._inbox: Inbox[Message] = Inbox()
        self._broken = ""
        self._meters = Meters()
        self._trace = trace
        self._steps = Steps(
            scheduler,
            runner,
            self._jobs,
            self._meters,
            speculation=settings.speculation,
            trace=trace,
            is_shared=lockstep is not None,
        )
        self._thread = threading.Thread(target=self._run, name="tokenwire-cuda", daemon=True)

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        now = time.monotonic()
        self._inbox.put(
            (job, None if job.deadline_ms is None else now + job.deadline_ms / 1000, now)
            for job in jobs
        )

    def wake(self, wave: int) -> None:
        """The front of a group has handed out jobs: here, which `submit` has put in before, or to
        another part."""
        self._inbox.put((Wake(wave),))

    def control(self, frames: Sequence[Control]) -> None:
        self._inbox.put(frames)

    def stop(self) -> None:
        self._inbox.stop()

    def join(self, timeout_s: float | None = None) -> None:
        """Waits until the thread has ended."""
        self._thread.join(timeout_s)

    def refusal(self, job: TokenJob) -> Finish | None:
        if self._broken:
            return refused(self._broken, FinishCause.LOST, retryable=True)
        return None

    def status(self) -> EngineStatus:
        found = self._scheduler.status()
        reason = self._broken
        if not reason and self._thread.ident is not None and not self._thread.is_alive():
            reason = "its thread has ended"
        return EngineStatus(
            card=self._card,
            ready=not reason,
            reason=reason,
            running=found.running,
            waiting=found.waiting,
            kv_blocks_total=found.blocks_total,
            kv_blocks_free=found.blocks_free + found.blocks_evictable,
            figures=(
                *self._meters.figures(
                    self._scheduler, self._runner.block_bytes(), self._runner.memory()
                ),
                *(self._figures() if self._figures is not None else ()),
            ),
            about=self._about,
        )

    def events(self) -> AsyncIterator[KvEvent]:
        return self._feed.read(self._inbox.ring)

    # Everything below runs in the thread

    def _run(self) -> None:
        try:
            while not self._has_ended:
                has_moved = self._turn()
                self._feed.pump()
                self._flush()
                if not has_moved:
                    if self._trace is not None:
                        self._trace.flush()
                    self._inbox.sleep(self._nap_s())
            self._end_all(Finish(FinishKind.ABORT, FinishCause.DRAIN))
            self._runner.dismiss()
        except BaseException as error:
            # Why all: neither a bug here nor a panic in a library's compiled code may leave
            # clients waiting for ever, or /ready lying.
            self._break(error)
            if self._lockstep is None:
                self._refuse_arrivals()
        self._feed.close()
        self._runner.close()
        if self._trace is not None:
            self._trace.close()
        if self._grammars is not None:
            self._grammars.close()

    def _turn(self) -> bool:
        """One turn of the loop; whether there may be more to do without a word from outside."""
        self._read()
        lockstep = self._lockstep
        if lockstep is not None and lockstep.sleeps(
            is_busy=self._is_busy, is_stopping=self._inbox.is_stopping
        ):
            self._runner.rest()
            return False
        now = time.monotonic()
        for seq in self._scheduler.expired(now):
            assert isinstance(seq.owner, Choice)
            self._jobs.finish(seq.owner, Finish(FinishKind.ABORT, FinishCause.DEADLINE))
        begun = time.perf_counter_ns()
        plan = self._scheduler.schedule(now, lockstep is None or lockstep.prefills)
        for seq in plan.preempted:
            self._runner.rows.forget(seq)
        agreed = self._agree(plan)
        if agreed.goes:
            if self._trace is not None:
                end = time.perf_counter_ns()
                self._trace.span("schedule", LOOP, begun, end)
                self._trace.count("running", end, self._scheduler.running)
                self._trace.count("tokens", end, plan.tokens)
            self._steps.launch(plan.rows, plan.decode_rows, agreed.span)
        else:
            self._runner.rest()
        ahead = 1 if self._overlap and agreed.goes else 0
        has_retired = self._steps.flying > ahead
        while self._steps.flying > ahead:
            self._steps.retire()
        return agreed.goes or agreed.stops or plan.has_effect or has_retired

    def _agree(self, plan: Plan) -> Agreement:
        """Whether there is a pass: with the other parts, where there are any."""
        if self._lockstep is None:
            return Agreement(goes=bool(plan.rows))
        return self._lockstep.meet(
            plan,
            self._scheduler,
            is_busy=self._is_busy,
            is_stopping=self._inbox.is_stopping,
        )

    @property
    def _is_busy(self) -> bool:
        return self._jobs.is_open or self._steps.flying > 0

    @property
    def _has_ended(self) -> bool:
        """It was stopped; with the other parts, where there are any."""
        if self._lockstep is None:
            return self._inbox.is_stopping
        return self._lockstep.has_stopped

    def _flush(self) -> None:
        if self._jobs.out:
            batch, self._jobs.out = tuple(self._jobs.out), []
            self._send(batch)

    # --- messages ---------------------------------------------------------------------------

    def _read(self) -> None:
        jobs = self._jobs
        for message in self._inbox.take():
            match message:
                case (TokenJob() as job, deadline, arrived):
                    self._take(job, deadline, arrived)
                case (Task() as task, future):
                    jobs.begin_constrained(task, future)
                case Abort() as abort:
                    jobs.abort(abort)
                case Credit() as credit:
                    jobs.add_credit(credit)
                case Wake(number):
                    if self._lockstep is not None:
                        self._lockstep.hear(number)
                case Release():
                    # It names a hand-over, and this engine has none.
                    pass

    def _take(self, job: TokenJob, deadline: float | None, arrived: float) -> None:
        try:
            self._jobs.take(job, deadline, arrived)
        except Exception as error:
            # Why: what one job says must not end the others.
            LOG.exception("job %s could not be taken", job.job)
            message = f"{type(error).__name__} when the job was taken"
            self._jobs.fail(
                job, Finish(FinishKind.ERROR, FinishCause.INTERNAL, retryable=True, message=message)
            )

    def _arrive(self, compiled: Compiled) -> None:
        """From a compiling thread."""
        self._inbox.put((compiled,))

    def _end_all(self, finish: Finish) -> None:
        self._jobs.finish_everything(finish)
        self._steps.drop()
        self._flush()

    def _break(self, error: BaseException) -> None:
        """The loop cannot go on: everything ends, and says why."""
        text = str(error) if isinstance(error, DeviceLost) else type(error).__name__
        LOG.critical("the engine's loop failed", exc_info=error)
        self._broken = f"its loop failed: {text}"
        if self._lockstep is not None:
            # Why no more: what is in flight may never end without the others, and the front of the
            # group ends the jobs of them all.
            return
        message = "the engine's loop failed"
        finish = Finish(FinishKind.ERROR, FinishCause.LOST, retryable=True, message=message)
        try:
            self._end_all(finish)
        except Exception:
            LOG.exception("what the loop held could not be given back")
            self._jobs.abandon(finish)
            self._flush()

    def _refuse_arrivals(self) -> None:
        """After the loop failed: nobody may wait for an answer."""
        finish = refused(self._broken, FinishCause.LOST, retryable=True)
        while not self._inbox.is_stopping:
            for message in self._inbox.take():
                match message:
                    case (TokenJob() as job, _, _):
                        self._jobs.out += refusals(job, finish)
                    case _:
                        pass
            self._flush()
            self._inbox.sleep()

    def _nap_s(self) -> float | None:
        due = self._jobs.next_deadline()
        left = None if due is None else max(due - time.monotonic(), 0.0)
        if self._lockstep is None:
            return left
        longest = self._lockstep.nap_s()
        return longest if left is None else min(left, longest)
