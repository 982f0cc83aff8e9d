"""The decode loop in its own thread: choices take turns, one id each. Knows no event loop.

Commands come in and deltas go out through two functions, so that everything about a job's life
stands here and is seen by one thread.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import Allowance, Outlet, refusals
from tokenwire.core.progress import Progress
from tokenwire.core.threaded_engine import Inbox, Send, Worker, nowhere
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
    Release,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.reference.model import Model
from tokenwire.plugins.engines.reference.run import Run
from tokenwire.plugins.engines.reference.settings import ReferenceSettings

__all__ = ("ReferenceWorker",)

LOG = logging.getLogger("tokenwire.engine.reference")


@final
class _Choice:
    def __init__(self, task: _Task, outlet: Outlet, progress: Progress, order: int) -> None:
        self.task = task
        self.outlet = outlet
        self.progress = progress
        self.order = order
        self.run: Run | None = None
        """None until it is its turn: it holds the KV cache."""
        self.is_made = False
        """All its ids are made; some may wait for credit."""


@final
class _Task:
    def __init__(self, job: TokenJob, deadline: float | None) -> None:
        self.job = job
        self.deadline = deadline
        self.allowance = Allowance(job.credit)
        self.choices: list[_Choice] = []


@final
class ReferenceWorker(Worker):
    def __init__(self, model: Model, card: EngineCard, settings: ReferenceSettings) -> None:
        self._model = model
        self._card = card
        self._max_running = settings.max_running
        self._send: Send = nowhere
        self._inbox: Inbox[tuple[TokenJob, float | None] | Control] = Inbox()
        self._tasks: dict[str, _Task] = {}
        self._waiting: list[tuple[int, int, _Choice]] = []
        self._running: deque[_Choice] = deque()
        self._order = 0
        self._active = 0
        """For status: written by the thread, read by anybody."""
        self._thread = threading.Thread(target=self._loop, name="tokenwire-reference", daemon=True)

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        now = time.monotonic()
        self._inbox.put(
            (job, None if job.deadline_ms is None else now + job.deadline_ms / 1000) for job in jobs
        )

    def control(self, frames: Sequence[Control]) -> None:
        self._inbox.put(frames)

    def stop(self) -> None:
        self._inbox.stop()

    def status(self) -> EngineStatus:
        return EngineStatus(card=self._card, running=self._active)

    # Everything below runs in the thread

    def _loop(self) -> None:
        while not self._inbox.is_stopping:
            out: list[TokenDelta] = []
            self._read(out)
            self._expire(out)
            self._admit()
            has_moved = self._turn(out)
            self._active = len(self._running)
            if out:
                self._send(tuple(out))
            if not has_moved:
                self._inbox.sleep(self._until_deadline())
        out = []
        for task in tuple(self._tasks.values()):
            self._end(task, Finish(FinishKind.ABORT, FinishCause.DRAIN), None, out)
        self._active = 0
        if out:
            self._send(tuple(out))

    def _read(self, out: list[TokenDelta]) -> None:
        for message in self._inbox.take():
            match message:
                case (job, deadline):
                    self._take(job, deadline, out)
                case Abort() as abort:
                    task = self._tasks.get(abort.job)
                    if task is not None:
                        finish = Finish(FinishKind.ABORT, FinishCause(abort.reason.value))
                        self._end(task, finish, abort.choice, out)
                case Credit() as credit:
                    self._add_credit(credit, out)
                case Release():
                    # It names a hand-over, and this engine has none.
                    pass

    def _take(self, job: TokenJob, deadline: float | None, out: list[TokenDelta]) -> None:
        if job.job in self._tasks:
            out.extend(refusals(job, refused("a job of this name is running")))
            return
        task = self._tasks[job.job] = _Task(job, deadline)
        card = self._card
        for index in range(job.n):
            self._order += 1
            outlet = Outlet(job, index, task.allowance, card.credit_cap)
            progress = Progress(job, eos_ids=card.eos_ids, context_length=card.context_length)
            choice = _Choice(task, outlet, progress, self._order)
            task.choices.append(choice)
            if progress.finish is None:
                heapq.heappush(self._waiting, (-job.priority, choice.order, choice))
            else:
                self._deliver(choice, outlet.end(progress.finish), out)

    def _admit(self) -> None:
        # Why not all that run: a client that gives no credit must not take a turn from others.
        active = sum(not choice.outlet.is_blocked for choice in self._running)
        while self._waiting and active < self._max_running:
            choice = heapq.heappop(self._waiting)[2]
            if not choice.outlet.is_over:
                job = choice.task.job
                choice.run = Run(
                    self._model,
                    job,
                    choice.outlet.index,
                    choice.progress,
                    self._card.vocab_size,
                )
                self._running.append(choice)
                active += 1

    def _turn(self, out: list[TokenDelta]) -> bool:
        """One id of the next choice that may run; whether there was one.

        Why one and not all: whatever came in meanwhile is looked at between two forward passes.
        """
        for _ in range(len(self._running)):
            choice = self._running.popleft()
            if choice.outlet.is_blocked:
                self._running.append(choice)
                continue
            if self._step(choice, out):
                self._running.append(choice)
            return True
        return False

    def _step(self, choice: _Choice, out: list[TokenDelta]) -> bool:
        """Whether it goes on."""
        run, outlet = choice.run, choice.outlet
        assert run is not None
        try:
            brought = run.step()
        except Exception as error:
            # Why everything: one job's failure (out of memory, say) must not end the others'.
            LOG.exception("a forward pass failed")
            message = f"{type(error).__name__} in a forward pass"
            finish = Finish(FinishKind.ERROR, FinishCause.INTERNAL, retryable=True, message=message)
            self._deliver(choice, outlet.end(finish), out)
            return False
        if not outlet.is_started:
            prompt = len(choice.task.job.prompt)
            outlet.counts = Counts(prompt=prompt, computed=prompt)
            outlet.prompt_logprobs = run.prompt_logprobs
        choice.is_made = brought.finish is not None
        deltas = outlet.put(
            brought.ids,
            finish=brought.finish,
            is_forced=brought.is_forced,
            logprobs=brought.logprobs,
        )
        self._deliver(choice, deltas, out)
        return not choice.is_made

    def _end(self, task: _Task, finish: Finish, index: int | None, out: list[TokenDelta]) -> None:
        for choice in task.choices:
            if index is None or choice.outlet.index == index:
                self._deliver(choice, choice.outlet.end(finish), out)
        self._running = deque(each for each in self._running if not each.outlet.is_over)

    def _deliver(
        self, choice: _Choice, deltas: Sequence[TokenDelta], out: list[TokenDelta]
    ) -> None:
        out.extend(deltas)
        if not choice.outlet.is_over:
            return
        choice.run = None
        task = choice.task
        # Why the length: `_take` may end a choice before the others are made.
        is_whole = len(task.choices) == task.job.n
        if is_whole and all(each.outlet.is_over for each in task.choices):
            self._tasks.pop(task.job.job, None)

    def _add_credit(self, credit: Credit, out: list[TokenDelta]) -> None:
        task = self._tasks.get(credit.job)
        if task is None:
            return
        task.allowance.add(credit.tokens)
        for choice in task.choices:
            if not choice.outlet.is_over:
                self._deliver(choice, choice.outlet.flush(), out)

    def _expire(self, out: list[TokenDelta]) -> None:
        now = time.monotonic()
        for task in tuple(self._tasks.values()):
            if task.deadline is not None and task.deadline <= now:
                self._end(task, Finish(FinishKind.ABORT, FinishCause.DEADLINE), None, out)

    def _until_deadline(self) -> float | None:
        due = [task.deadline for task in self._tasks.values() if task.deadline is not None]
        return max(min(due) - time.monotonic(), 0.0) if due else None
