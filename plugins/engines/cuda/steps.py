"""Steps: launched, read, brought to their choices; where one failed, its rows are run alone.

Knows no thread, no message and no client.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from typing import final

from tokenwire.core.tokens import Finish, FinishCause, FinishKind, IdLogprobs
from tokenwire.plugins.engines.cuda.blame import NETWORK, op_of, release_frames
from tokenwire.plugins.engines.cuda.choice import Choice
from tokenwire.plugins.engines.cuda.drafts import propose
from tokenwire.plugins.engines.cuda.jobs import Jobs
from tokenwire.plugins.engines.cuda.meters import Meters
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence as Run
from tokenwire.plugins.engines.cuda.results import Results, Step
from tokenwire.plugins.engines.cuda.runner import Runner
from tokenwire.plugins.engines.cuda.settings import Speculation
from tokenwire.plugins.engines.cuda.trace import Trace
from tokenwire.plugins.engines.cuda.wishes import Wishes, choice_of

__all__ = ("DeviceLost", "Steps")

LOG = logging.getLogger("tokenwire.engine.cuda")


class DeviceLost(Exception):
    """Nothing can be computed any more in this process."""


@final
class Steps:
    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        jobs: Jobs,
        meters: Meters,
        *,
        speculation: Speculation | None = None,
        trace: Trace | None = None,
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: other ranks make the same passes, so that a step that fails is the end."""
        self._is_shared = is_shared
        self._scheduler = scheduler
        self._runner = runner
        self._jobs = jobs
        self._meters = meters
        self._speculation = speculation
        self._trace = trace
        self._flying: deque[tuple[Step, Wishes]] = deque()

    @property
    def flying(self) -> int:
        """Launched and not retired."""
        return len(self._flying)

    def launch(self, rows: Sequence[Row], decode_rows: int, span: int = 0) -> None:
        """Does not wait for the device. What goes wrong is seen when the step is retired; where
        ranks share it, raises DeviceLost. `span`: as Batch's."""
        try:
            wishes = Wishes(rows)
            step = self._start(rows, decode_rows, wishes, span)
        except Exception as error:
            self._give_up(error)
            wishes, step = Wishes(()), Step.failed(rows, error)
        self._flying.append((step, wishes))

    def retire(self) -> None:
        """The oldest step: waits for it, and brings its results. Raises DeviceLost."""
        step, wishes = self._flying.popleft()
        trace, begun = self._trace, time.perf_counter_ns()
        try:
            results = step.results()
            scores = wishes.read(results)
        except Exception as error:
            self._give_up(error)
            self._isolate(step, error)
            return
        if trace is None:
            self._bring(step, results, scores)
            return
        read = time.perf_counter_ns()
        self._bring(step, results, scores)
        trace.step(step.number, step.times, begun, read, time.perf_counter_ns())

    def drop(self) -> None:
        """All sequences are over: wait for what is in flight, so that their blocks come back."""
        while self._flying:
            step, _ = self._flying.popleft()
            step.wait()
            for row in step.rows:
                self._scheduler.retire(row)

    # --- launching ----------------------------------------------------------------------------

    def _start(self, rows: Sequence[Row], decode_rows: int, wishes: Wishes, span: int = 0) -> Step:
        held = self._runner.rows
        for row in rows:
            if not held.has(row.seq):
                choice = choice_of(row)
                task = choice.task
                held.take(row.seq, task.job.sampling, task.adapter)
                if not choice.began:
                    self._meters.begin(choice)
        return self._runner.launch(rows, decode_rows, wishes.asked(), span)

    # --- results ------------------------------------------------------------------------------

    def _bring(self, step: Step, results: Results, scores: Mapping[int, IdLogprobs]) -> None:
        self._meters.step(step.launched)
        ids, at = results.ids, 0
        for row in step.rows:
            count = 1 + len(row.drafts) if row.samples else 0
            if row.epoch != row.seq.epoch or not count:
                self._scheduler.retire(row)
            elif not all(results.is_sound[at : at + count]):
                self._poisoned(row)
            else:
                mine = [scores[place] for place in range(at, at + count) if place in scores]
                self._take(row, ids[at : at + count], mine)
            at += count
        self._meters.settle()

    def _take(self, row: Row, ids: list[int], scores: list[IdLogprobs]) -> None:
        """`ids`: one after the last known id, and one after each draft."""
        taken = 1
        for draft in row.drafts:
            if ids[taken - 1] != draft:
                break
            taken += 1
        choice, meters = choice_of(row), self._meters
        try:
            count = choice.take(ids[:taken], scores, self._jobs.out)
        except Exception as error:
            # Why: a grammar's backend is others' code, and fails for one choice alone.
            LOG.exception("job %s: an id could not be taken", choice.task.job.job)
            self._fail(row, f"{type(error).__name__} when an id was taken")
            return
        if choice.heard == meters.before:
            meters.steady += 1
        else:
            meters.hear(choice)
        choice.heard = meters.now
        meters.generated += count
        if row.drafts:
            meters.drafts(len(row.drafts), taken - 1, count)
        seq = row.seq
        self._scheduler.retire(row, ids[:count])
        if choice.progress.finish is not None:
            self._jobs.over(choice)
        elif choice.outlet.is_blocked:
            # Why: a step in flight puts its id at the sequence's row, where the next looks for it.
            if not seq.pending:
                self._runner.rows.forget(seq)
            self._scheduler.park(seq)
        elif self._speculation is not None:
            self._draft(choice, seq)

    def _draft(self, choice: Choice, seq: Run) -> None:
        settings = self._speculation
        if settings is None or choice.needs_feedback:
            return
        left = seq.max_tokens - len(seq.tokens) - 1
        seq.drafts = propose(seq.tokens, settings, left)

    # --- faults -------------------------------------------------------------------------------

    def _give_up(self, error: Exception) -> None:
        """Where others wait in the middle of the same pass, none of its rows can be run again."""
        if self._is_shared:
            raise DeviceLost(f"a step failed: {type(error).__name__}: {error}") from error

    def _isolate(self, step: Step, error: Exception) -> None:
        """A step failed: run each of its rows alone, so that only those end that fail alone.

        Those of steps in flight after it too, in their order: their inputs were ids that never
        came. That is safe: KV is written to the same slots, and draws depend on the row alone."""
        text = "".join(traceback.format_exception(error))
        LOG.warning("a step of %d rows failed, each is run alone: %s", len(step.rows), text)
        self._meters.error(op_of(error))
        steps = [step, *(later for later, _ in self._flying)]
        self._flying.clear()
        for later in steps[1:]:
            later.wait()
        self._recover(error)
        lost = ""
        for row in (row for each in steps for row in each.rows):
            if row.epoch != row.seq.epoch:
                self._scheduler.retire(row)
            elif lost:
                self._fail(row, lost, FinishCause.LOST)
            elif not self._alone(row) and not self._runner.is_alive():
                lost = f"the device is lost: {type(error).__name__}: {error}"
        if lost:
            raise DeviceLost(lost)

    def _alone(self, row: Row) -> bool:
        """Run it again, and bring what it gives. False: it failed, and its choice has ended."""
        # Why anew: its row may be ahead of it, with blocks of its window's start gone.
        self._runner.rows.forget(row.seq)
        try:
            wishes = Wishes((row,))
            step = self._start((row,), int(row.count == 1), wishes)
            results = step.results()
            scores = wishes.read(results)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            LOG.error("job %s: a row failed alone: %s", choice_of(row).task.job.job, text)
            self._meters.error(op_of(error))
            self._recover(error)
            self._fail(row, f"{type(error).__name__} in a step")
            return False
        self._bring(step, results, scores)
        return True

    def _recover(self, error: Exception) -> None:
        release_frames(error)
        self._runner.recover()

    def _poisoned(self, row: Row) -> None:
        LOG.error("job %s: the network gave NaN or infinity", choice_of(row).task.job.job)
        self._meters.error(NETWORK)
        self._fail(row, "the network gave NaN or infinity")

    def _fail(self, row: Row, message: str, cause: FinishCause = FinishCause.INTERNAL) -> None:
        choice = choice_of(row)
        self._scheduler.forget(row.seq)
        self._jobs.finish(choice, Finish(FinishKind.ERROR, cause, retryable=True, message=message))
        self._jobs.over(choice)
        self._scheduler.retire(row)
