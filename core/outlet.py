"""What one choice sends: its deltas in order, counts on the first and last, credit kept. Pure.

Shared by engines, so that the interface's rules about deltas stand in one file. Knows no model, no
scheduler and no time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import final

from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import Counts, Finish, IdLogprobs, TokenDelta, TokenJob

__all__ = ("Allowance", "Outlet", "refusals")


@final
class Allowance:
    """How many tokens a job may still send, all choices together; None: no limit."""

    __slots__ = ("tokens",)

    def __init__(self, tokens: int | None) -> None:
        self.tokens = None if tokens is None else max(tokens, 0)

    def add(self, tokens: int) -> None:
        if self.tokens is not None:
            self.tokens += max(tokens, 0)


@final
class Outlet:
    """`put` what a step brought, `flush` when credit came, `end` to break off."""

    __slots__ = (
        "_allowance",
        "_cap",
        "_finish",
        "_forced",
        "_ids",
        "_job",
        "_logprobs",
        "at",
        "counts",
        "index",
        "is_over",
        "is_started",
        "prompt_logprobs",
    )

    def __init__(self, job: TokenJob, index: int, allowance: Allowance, cap: int) -> None:
        self._job = job
        self._allowance = allowance
        self._cap = cap
        self._ids: array[int] = array("I")
        self._forced = bytearray()
        self._logprobs: list[IdLogprobs] = []
        self._finish: Finish | None = None
        self.index = index
        self.at = len(job.resume_ids)
        """Ids sent, those of earlier attempts included."""
        self.counts = Counts(prompt=len(job.prompt))
        """Of the prompt; `generated` is filled in."""
        self.prompt_logprobs: tuple[IdLogprobs | None, ...] | None = None
        """Goes with the first delta."""
        self.is_started = False
        """The first delta is out."""
        self.is_over = False
        """The finish is out."""

    @property
    def is_blocked(self) -> bool:
        """It may not run further ahead until credit comes."""
        return len(self._ids) >= self._cap

    @property
    def made(self) -> int:
        """Ids put so far, sent or kept, those of earlier attempts included."""
        return self.at + len(self._ids)

    def plain(self, ids: TokenIds) -> TokenDelta | None:
        """The delta of ids, where there is nothing else to say of them and nothing waits;
        None: `put` them."""
        credit = self._allowance.tokens
        if not (self.is_started and ids) or self._ids:
            return None
        if credit is not None:
            if len(ids) > credit:
                return None
            self._allowance.tokens = credit - len(ids)
        job, at = self._job, self.at
        self.at = at + len(ids)
        return TokenDelta(job.job, at, job.attempt, self.index, ids)

    def put(
        self,
        ids: TokenIds,
        *,
        finish: Finish | None = None,
        is_forced: bool = False,
        logprobs: Sequence[IdLogprobs] = (),
    ) -> list[TokenDelta]:
        """The deltas that may go now."""
        credit = self._allowance.tokens
        if credit is None or (len(ids) <= credit and not self._ids):
            # Why: a client that keeps up; nothing is kept, so nothing need be cut.
            if not ids and finish is None:
                return []
            if credit is not None:
                self._allowance.tokens = credit - len(ids)
            return [self._delta(ids, tuple(logprobs), is_forced, finish)]
        self._ids.extend(ids)
        self._forced.extend(bytes((is_forced,)) * len(ids))
        self._logprobs.extend(logprobs)
        self._finish = finish
        return self.flush()

    def flush(self) -> list[TokenDelta]:
        """What the credit allows of what was kept. A finish alone needs none."""
        deltas: list[TokenDelta] = []
        credit = self._allowance.tokens
        while self._ids and credit:
            is_forced = self._forced[0]
            other = self._forced.find(not is_forced)
            run = min(len(self._ids) if other < 0 else other, credit)
            ids, logprobs = TokenIds(self._ids[:run]), tuple(self._logprobs[:run])
            del self._ids[:run], self._forced[:run], self._logprobs[:run]
            self._allowance.tokens = credit = credit - run
            finish = None if self._ids else self._finish
            deltas.append(self._delta(ids, logprobs, bool(is_forced), finish))
        if not self._ids and self._finish is not None and not self.is_over:
            deltas.append(self._delta(NO_IDS, (), False, self._finish))
        return deltas

    def end(self, finish: Finish) -> list[TokenDelta]:
        """Break off: what was kept is dropped. Nothing, where it is over already."""
        if self.is_over:
            return []
        del self._ids[:], self._forced[:], self._logprobs[:]
        return [self._delta(NO_IDS, (), False, finish)]

    def _delta(
        self,
        ids: TokenIds,
        logprobs: tuple[IdLogprobs, ...],
        is_forced: bool,
        finish: Finish | None,
    ) -> TokenDelta:
        job, at, is_first = self._job, self.at, not self.is_started
        self.at = at + len(ids)
        self.is_started = True
        self.is_over = finish is not None
        counts = None
        if is_first or finish is not None:
            prompt = self.counts
            counts = Counts(prompt.prompt, prompt.cached, prompt.computed, self.at)
        return TokenDelta(
            job.job,
            at,
            job.attempt,
            self.index,
            ids,
            logprobs=logprobs,
            prompt_logprobs=self.prompt_logprobs if is_first else None,
            forced=is_forced,
            counts=counts,
            finish=finish,
        )


def refusals(job: TokenJob, finish: Finish) -> list[TokenDelta]:
    """One finish a choice, for a job that is not begun."""
    allowance = Allowance(None)
    return [
        delta
        for index in range(max(job.n, 1))
        for delta in Outlet(job, index, allowance, 0).end(finish)
    ]
