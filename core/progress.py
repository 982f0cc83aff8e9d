"""How far a choice of a job is, and when it ends: the stopping rules that all engines share.

Pure. Knows no model, no text and no clock. An engine asks `forced` and `masked`, chooses an id, and
pushes it; what comes back may be sent. Ids count as the token-ID interface says: the id that ends a
choice counts towards `max_tokens` and is in `finish.matched` alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import final

from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Finish,
    FinishCause,
    FinishKind,
    JobStopping,
    ReasoningBudget,
    TokenJob,
)

__all__ = ("Progress",)

NONE: frozenset[int] = frozenset()


@final
class _Sequences:
    """Looks for stop sequences; holds back ids that may yet become one."""

    def __init__(self, sequences: Sequence[TokenIds]) -> None:
        self._stops = sorted((tuple(ids) for ids in sequences if ids), key=len, reverse=True)
        self.held: list[int] = []

    def push(self, id: int, *, may_match: bool) -> tuple[list[int], TokenIds]:
        """(ids that may go, the sequence that this id completed or none)."""
        held = self.held
        held.append(id)
        for stop in self._stops if may_match else ():
            if len(stop) <= len(held) and tuple(held[-len(stop) :]) == stop:
                self.held = []
                return held[: -len(stop)], TokenIds(stop)
        keep = self._longest_prefix(held)
        self.held = held[len(held) - keep :]
        return held[: len(held) - keep], NO_IDS

    def flush(self) -> list[int]:
        held, self.held = self.held, []
        return held

    def _longest_prefix(self, held: list[int]) -> int:
        """The length of the longest tail of `held` with which some sequence begins."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(held)), longest, -1):
                if tuple(held[-size:]) == stop[:size]:
                    longest = size
                    break
        return longest


@final
class _Reasoning:
    """Follows where reasoning starts and ends, and what it has cost."""

    def __init__(self, budget: ReasoningBudget) -> None:
        self._start = tuple(budget.start_ids)
        self._end = tuple(budget.end_ids)
        self._budget = budget.budget
        self._inside = budget.open
        self._spent = 0
        self._recent: deque[int] = deque(maxlen=max(len(self._start), len(self._end), 1))

    def push(self, id: int) -> None:
        self._recent.append(id)
        if not self._inside:
            if self._start and self._ends_with(self._start):
                self._inside = True
            return
        self._spent += 1
        if self._end and self._ends_with(self._end):
            self._inside = False

    def is_over_budget(self) -> bool:
        return self._inside and self._budget is not None and self._spent >= self._budget

    def close(self) -> None:
        self._inside = False

    def _ends_with(self, marker: tuple[int, ...]) -> bool:
        recent = self._recent
        size = len(marker)
        if len(recent) < size or recent[-1] != marker[-1]:
            return False
        return tuple(recent)[-size:] == marker


@final
class Progress:
    """One choice: `total` ids so far (held and matched ones included), `finish` when it is over.

    `resume_ids` count as output and are never released. A matched sequence may not begin in them:
    an earlier attempt would have held it back.
    """

    def __init__(self, job: TokenJob, *, eos_ids: Collection[int], context_length: int) -> None:
        stopping: JobStopping = job.stopping
        self.total = len(job.resume_ids)
        self.finish: Finish | None = None
        self._forced: deque[int] = deque()
        self._min = stopping.min_tokens
        self._eos = NONE if stopping.ignore_eos else frozenset(eos_ids)
        self._ends = self._eos | frozenset(stopping.stop_ids)
        self._sequences = _Sequences(stopping.sequences) if any(stopping.sequences) else None
        self._reasoning = None if job.reasoning is None else _Reasoning(job.reasoning)
        self._budget = job.reasoning or ReasoningBudget()
        room = context_length - len(job.prompt)
        self._limit = room if stopping.max_tokens is None else min(stopping.max_tokens, room)
        by_max = stopping.max_tokens is not None and stopping.max_tokens <= room
        self._limit_cause = FinishCause.MAX if by_max else FinishCause.CONTEXT
        self._check_start(job.resume_ids)

    def forced(self) -> int | None:
        """The id that must come next whatever the model prefers; push it as any other."""
        return self._forced[0] if self._forced else None

    def masked(self) -> frozenset[int]:
        """Ids that must not be chosen next: eos and stop ids before `min_tokens`."""
        return self._ends if self.total < self._min else NONE

    def push(self, id: int) -> Sequence[int]:
        """Take the next id; returns what may be sent now. Look at `finish` afterwards."""
        self.total = total = self.total + 1
        if self._forced:
            return self._push_forced()
        released: Sequence[int] = (id,)
        may_end = total > self._min
        if self._sequences is not None:
            released, matched = self._sequences.push(id, may_match=may_end)
            if matched:
                self.finish = Finish(FinishKind.STOP, FinishCause.SEQUENCE, matched)
                return released
        if may_end and id in self._ends:
            cause = FinishCause.EOS if id in self._eos else FinishCause.ID
            self.finish = Finish(FinishKind.STOP, cause, TokenIds((id,)))
            return self._without(id, released)
        if total >= self._limit:
            self.finish = Finish(FinishKind.LENGTH, self._limit_cause)
            return self._with_held(released)
        if self._reasoning is not None:
            self._reasoning.push(id)
            if self._reasoning.is_over_budget():
                released = self._with_held(released)
                self._spend()
        return released

    def stop(
        self, matched: TokenIds = NO_IDS, *, cause: FinishCause = FinishCause.EOS
    ) -> Sequence[int]:
        """It ended by itself, with these ids or none: stop(cause). Returns what was held."""
        self.total += len(matched)
        self.finish = Finish(FinishKind.STOP, cause, matched)
        return self._with_held(())

    def cut(self) -> Sequence[int]:
        """The model can go no further: length(max). Returns what was held back."""
        self.finish = Finish(FinishKind.LENGTH, FinishCause.MAX)
        return self._with_held(())

    def _push_forced(self) -> Sequence[int]:
        id = self._forced.popleft()
        if self.total >= self._limit:
            self.finish = Finish(FinishKind.LENGTH, self._limit_cause)
        return (id,)

    def _spend(self) -> None:
        if self._budget.on_budget == "finish":
            self.finish = Finish(FinishKind.LENGTH, FinishCause.BUDGET)
            return
        assert self._reasoning is not None
        self._reasoning.close()
        self._forced.extend(self._budget.force_ids or self._budget.end_ids)

    def _check_start(self, resume_ids: TokenIds) -> None:
        """What is over before it begins, and where a resumed choice stands."""
        if self.total >= self._limit:
            self.finish = Finish(FinishKind.LENGTH, self._limit_cause)
            return
        if self._reasoning is None:
            return
        if self._reasoning.is_over_budget():
            self._spend()
        for id in resume_ids:
            if self._forced:
                self._forced.popleft()
                continue
            self._reasoning.push(id)
            if self._reasoning.is_over_budget():
                self._spend()

    def _with_held(self, released: Sequence[int]) -> Sequence[int]:
        if self._sequences is None:
            return released
        return [*released, *self._sequences.flush()]

    def _without(self, id: int, released: Sequence[int]) -> Sequence[int]:
        """What goes when `id` ended the choice as itself: all before it."""
        before = self._with_held(released)
        assert before[-1] == id
        return before[:-1]
