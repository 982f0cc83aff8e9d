"""The jobs that were taken: begun, aborted, given credit, ended. Knows no step and no device.

Whatever ends a choice goes through `finish` or `over`, so that nothing it held stays behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeAlias, final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    Credit,
    EngineCard,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.choice import Choice, Task
from tokenwire.plugins.engines.cuda.constrained import GrammarError, Grammars, Make
from tokenwire.plugins.engines.cuda.policy.intake import sequence
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.rows import Rows

__all__ = ("Compiled", "Jobs")

LOG = logging.getLogger("tokenwire.engine.cuda")

Compiled: TypeAlias = "tuple[Task, Future[Make]]"
"""A task's grammar is there, or could not be made."""


@final
class Jobs:
    def __init__(
        self,
        card: EngineCard,
        scheduler: Scheduler,
        rows: Rows,
        arrive: Callable[[Compiled], None],
        *,
        grammars: Grammars | None = None,
        adapters: Mapping[str, int] | None = None,
        reads_cache: bool = True,
        drafts: bool = False,
    ) -> None:
        """`arrive` is called from other threads. `adapters`: name -> slot, from 1."""
        self._card = card
        self._scheduler = scheduler
        self._rows = rows
        self._arrive = arrive
        self._grammars = grammars
        self._adapters = adapters or {}
        self._reads_cache = reads_cache
        self._drafts = drafts
        self._tasks: dict[str, Task] = {}
        self.out: list[TokenDelta] = []
        """What goes with the next batch."""

    @property
    def is_open(self) -> bool:
        """Some job has not ended, in whatever state."""
        return bool(self._tasks)

    def take(self, job: TokenJob, deadline: float | None, arrived: float = 0.0) -> None:
        """`deadline`, `arrived`: by the clock whose time the scheduler gets."""
        if job.job in self._tasks:
            self.out += refusals(job, refused("a job of this name is running"))
            return
        slot = 0 if job.adapter is None else self._adapters[job.adapter.name]
        task = self._tasks[job.job] = Task(job, deadline, slot, arrived)
        task.choices += [Choice(task, index, self._card) for index in range(job.n)]
        for choice in task.choices:
            finish = choice.progress.finish
            if finish is None:
                reason = self._admit(choice)
                finish = refused(reason) if reason else None
            if finish is not None:
                self.finish(choice, finish)
        if job.constraint is not None and task.live:
            assert self._grammars is not None
            future = self._grammars.begin(job)
            future.add_done_callback(lambda done: self._arrive((task, done)))

    def begin_constrained(self, task: Task, future: Future[Make]) -> None:
        """Its grammar is compiled, or cannot be."""
        try:
            make = future.result()
            made = [make() for _ in task.choices]
        except GrammarError as error:
            kind = task.job.constraint.kind if task.job.constraint is not None else ""
            self._finish_all(task, refused(f"the {kind} constraint cannot be kept: {error}"))
            return
        except Exception:
            LOG.exception("a grammar could not be compiled")
            cause = Finish(
                FinishKind.ERROR, FinishCause.INTERNAL, message="a grammar backend failed"
            )
            self._finish_all(task, cause)
            return
        for choice, constrained in zip(task.choices, made, strict=True):
            if choice.sequence is not None and not choice.outlet.is_over:
                for id in task.job.resume_ids:
                    constrained.push(id)
                choice.constrained = constrained
                self._scheduler.unpark(choice.sequence)

    def abort(self, abort: Abort) -> None:
        task = self._tasks.get(abort.job)
        if task is None:
            return
        reason = abort.reason if abort.reason.is_known else AbortReason.CLIENT
        finish = Finish(FinishKind.ABORT, FinishCause(reason.value))
        for choice in tuple(task.choices):
            if abort.choice is None or abort.choice == choice.outlet.index:
                self.finish(choice, finish)

    def add_credit(self, credit: Credit) -> None:
        task = self._tasks.get(credit.job)
        if task is None:
            return
        task.allowance.add(credit.tokens)
        for choice in tuple(task.choices):
            if choice.outlet.is_over:
                continue
            self.out += choice.outlet.flush()
            if choice.outlet.is_over:
                self.over(choice)
            elif choice.sequence is not None and choice.may_run:
                self._scheduler.unpark(choice.sequence)

    def finish(self, choice: Choice, finish: Finish) -> None:
        """End it now, in whatever state. Nothing, where it is over."""
        if not choice.outlet.is_over:
            self.out += choice.outlet.end(finish)
            self.over(choice)

    def over(self, choice: Choice) -> None:
        """Its ids are all drawn: what it held goes back. The task ends with its last delta."""
        if choice.sequence is not None:
            self._rows.forget(choice.sequence)
            self._scheduler.abort(choice.sequence)
        if choice.outlet.is_over and not choice.is_counted:
            choice.is_counted = True
            choice.task.live -= 1
            if not choice.task.live:
                self._tasks.pop(choice.task.job.job, None)

    def fail(self, job: TokenJob, finish: Finish) -> None:
        """End a job that could not be taken, as far as it was."""
        task = self._tasks.get(job.job)
        if task is None or not task.choices:
            self._tasks.pop(job.job, None)
            self.out += refusals(job, finish)
        else:
            self._finish_all(task, finish)

    def abandon(self, finish: Finish) -> None:
        """End every choice, and let go of nothing: for when the loop's own state is broken."""
        for task in self._tasks.values():
            for choice in task.choices:
                self.out += choice.outlet.end(finish)
        self._tasks.clear()

    def finish_everything(self, finish: Finish) -> None:
        for task in tuple(self._tasks.values()):
            self._finish_all(task, finish)

    def next_deadline(self) -> float | None:
        due = [task.deadline for task in self._tasks.values() if task.deadline is not None]
        return min(due) if due else None

    def _finish_all(self, task: Task, finish: Finish) -> None:
        for choice in tuple(task.choices):
            self.finish(choice, finish)

    def _admit(self, choice: Choice) -> str:
        """Why its sequence can never run; "": it waits."""
        task, job = choice.task, choice.task.job
        seq = sequence(
            job,
            choice.outlet.index,
            block_size=self._card.block_size,
            context_length=self._card.context_length,
            deadline=task.deadline,
            needs_feedback=choice.needs_feedback or self._drafts,
            reads_cache=self._reads_cache,
            owner=choice,
        )
        reason = self._scheduler.add(seq)
        if reason:
            return reason
        choice.sequence = seq
        if job.constraint is not None:
            self._scheduler.park(seq)
        return ""
