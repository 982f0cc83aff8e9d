"""One choice of a job in the engine: its sequence, its stopping rules, what it sends. Knows no step
and no device."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence as Many
from typing import final

import numpy as np

from tokenwire.core.outlet import Allowance, Outlet
from tokenwire.core.progress import Progress
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    EngineCard,
    FinishCause,
    IdLogprobs,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.constrained import Constrained
from tokenwire.plugins.engines.cuda.edits import Bits, RowEdits, allowed_bits
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Choice", "Task")


@final
class Task:
    """A job that was taken, with the choices that live."""

    def __init__(
        self, job: TokenJob, deadline: float | None, adapter: int, arrived: float = 0.0
    ) -> None:
        self.job = job
        self.deadline = deadline
        self.arrived = arrived
        self.adapter = adapter
        """The slot of its LoRA adapter; 0: none."""
        self.allowance = Allowance(job.credit)
        self.choices: list[Choice] = []
        self.live = job.n


@final
class Choice:
    def __init__(self, task: Task, index: int, card: EngineCard) -> None:
        job = task.job
        self.task = task
        self.outlet = Outlet(job, index, task.allowance, card.credit_cap)
        self.progress = Progress(job, eos_ids=card.eos_ids, context_length=card.context_length)
        self.sequence: Sequence | None = None
        self.constrained: Constrained | None = None
        self.prompt_scores: list[IdLogprobs | None] = [None]
        self.is_plain = is_plain(job)
        """Nothing of it changes logits or wants scores: so are most."""
        self.needs_feedback = needs_feedback(job)
        """Its next id depends on those before in ways that the device does not know."""
        self.is_counted = False
        """Its end was taken off the task's count."""
        self.began = 0.0
        """When it first ran, by time.monotonic; 0: not yet."""
        self.heard = 0.0
        """When it last had an id."""
        self._vocab_size = card.vocab_size
        self._allowed: Bits | None = None
        if len(job.sampling.allowed_ids):
            self._allowed = allowed_bits(card.vocab_size, allowed=job.sampling.allowed_ids)
        self._is_stuck = False
        """No id may come next: its grammar leads nowhere, or not with the ids that are allowed."""
        self._held: deque[IdLogprobs] = deque()
        """Of ids that were drawn and may not go yet."""

    @property
    def may_run(self) -> bool:
        """It has ids to make, room to keep them, and the grammar that it needs."""
        has_grammar = self.task.job.constraint is None or self.constrained is not None
        return self.progress.finish is None and not self.outlet.is_blocked and has_grammar

    def edits(self) -> RowEdits | None:
        """What its next id asks of the logits; None: nothing."""
        if self.is_plain:
            return None
        sampling, progress = self.task.job.sampling, self.progress
        grammar = None if self.constrained is None else self.constrained.bits()
        if grammar is None:
            grammar = self._allowed
        elif self._allowed is not None:
            grammar = grammar & self._allowed
        bits = allowed_bits(self._vocab_size, masked=progress.masked(), grammar=grammar)
        forced = progress.forced()
        self._is_stuck = forced is None and bits is not None and not bits.any()
        penalised = None
        if _penalises(self.task.job):
            penalised = (sampling, _ids(self.task.job.prompt), _ids(self._output()))
        if not (sampling.logit_bias or penalised) and bits is None and forced is None:
            return None
        return RowEdits(dict(sampling.logit_bias), bits, penalised, forced)

    def take(self, ids: Many[int], scores: Many[IdLogprobs], out: list[TokenDelta]) -> int:
        """What a step drew; returns how many of the ids count: the rest come after the end."""
        outlet, progress = self.outlet, self.progress
        if not outlet.is_started:
            self._start()
        if self._is_stuck:
            rest = TokenIds(progress.cut())
            out += outlet.put(rest, finish=progress.finish, logprobs=tuple(self._held))
            return 0
        if self.is_plain and len(ids) == 1:
            sent = progress.push(ids[0])
            if progress.finish is None and sent:
                delta = outlet.plain(TokenIds(sent))
                if delta is not None:
                    out.append(delta)
                    return 1
            out += outlet.put(TokenIds(sent), finish=progress.finish)
            return 1
        for at, id in enumerate(ids):
            self._push(id, scores[at] if scores else None, out)
            if progress.finish is not None:
                return at + 1
        return len(ids)

    def _push(self, id: int, score: IdLogprobs | None, out: list[TokenDelta]) -> None:
        outlet, progress = self.outlet, self.progress
        is_forced = progress.forced() is not None
        if score is not None:
            self._held.append(score)
        sent = progress.push(id)
        if self.constrained is not None and progress.finish is None:
            self.constrained.push(id)
            if self.constrained.is_over:
                sent = [*sent, *progress.stop(cause=FinishCause.GRAMMAR)]
        ready = [self._held.popleft() for _ in sent] if self._held else []
        out += outlet.put(
            TokenIds(sent), finish=progress.finish, is_forced=is_forced, logprobs=ready
        )

    def _start(self) -> None:
        seq, prompt = self.sequence, len(self.task.job.prompt)
        assert seq is not None
        cached = min(seq.cached_tokens, prompt)
        self.outlet.counts = Counts(prompt=prompt, cached=cached, computed=prompt - cached)
        asked = self.task.job.logprobs
        if asked is not None and asked.prompt is not None:
            self.outlet.prompt_logprobs = tuple(self.prompt_scores)

    def _output(self) -> array[int]:
        assert self.sequence is not None
        return self.sequence.tokens[len(self.task.job.prompt) :]


def is_plain(job: TokenJob) -> bool:
    """No id of it depends on more than the ids before, the draw's numbers, and the network."""
    return not (
        job.logprobs is not None
        or job.sampling.logit_bias
        or len(job.sampling.allowed_ids)
        or needs_feedback(job)
    )


def needs_feedback(job: TokenJob) -> bool:
    budget = job.reasoning.budget if job.reasoning is not None else None
    return bool(
        job.constraint is not None
        or job.stopping.min_tokens
        or budget is not None
        or _penalises(job)
    )


def _penalises(job: TokenJob) -> bool:
    sampling = job.sampling
    return bool(
        sampling.frequency_penalty or sampling.presence_penalty or sampling.repetition_penalty != 1
    )


def _ids(ids: Many[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(ids, np.int64)
