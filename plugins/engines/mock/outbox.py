"""What the mock sends: deltas in order, counts on the first and last, credit kept. Knows no time.

It is the only place that makes deltas, so that the interface's rules about them stand in one file.
"""

from __future__ import annotations

from typing import final

from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import Counts, Finish, TokenDelta, TokenJob
from tokenwire.plugins.engines.mock.sequence import Buffered, Sequence

__all__ = ("Outbox",)


@final
class Outbox:
    """`waiting` is what goes with the next batch."""

    def __init__(self, credit_cap: int) -> None:
        self._cap = credit_cap
        self.waiting: list[TokenDelta] = []

    def take(self) -> tuple[TokenDelta, ...]:
        batch = tuple(self.waiting)
        self.waiting.clear()
        return batch

    def refuse(self, job: TokenJob, finish: Finish) -> None:
        """One finish a choice, of a job that was never begun."""
        at = len(job.resume_ids)
        counts = Counts(prompt=len(job.prompt), generated=at)
        for index in range(max(job.n, 1)):
            self.waiting.append(
                TokenDelta(job.job, at, job.attempt, index, counts=counts, finish=finish)
            )

    def deliver(
        self, sequence: Sequence, ids: TokenIds, finish: Finish | None, *, is_forced: bool = False
    ) -> None:
        """Send what a step brought, or keep it where credit is short."""
        buffered = sequence.buffered
        if buffered is None:
            if ids or finish is not None:
                self._send(sequence, ids, finish, is_forced)
            return
        buffered.ids.extend(ids)
        buffered.forced.extend(bytes((is_forced,)) * len(ids))
        buffered.finish = finish
        self.flush(sequence, buffered)

    def flush(self, sequence: Sequence, buffered: Buffered) -> None:
        """Send what the job's credit allows. A finish alone needs none."""
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
        sequence.is_blocked = len(buffered.ids) >= self._cap

    def end(self, sequence: Sequence, finish: Finish) -> None:
        """End it now; what it made and did not send is dropped."""
        self._send(sequence, NO_IDS, finish)

    def _send(
        self, sequence: Sequence, ids: TokenIds, finish: Finish | None, is_forced: bool = False
    ) -> None:
        """A delta with everything that may stand in it."""
        state, choice, at = sequence.state, sequence.choice, sequence.at
        job, asked = state.job, state.job.logprobs
        is_first, sequence.is_started = not sequence.is_started, True
        sequence.at = at + len(ids)
        with_prompt = is_first and asked is not None and asked.prompt is not None
        self.waiting.append(
            TokenDelta(
                job.job,
                at,
                job.attempt,
                sequence.index,
                ids,
                logprobs=() if asked is None else tuple(choice.logprobs(ids, at, asked)),
                prompt_logprobs=choice.prompt_logprobs(asked) if with_prompt and asked else None,
                forced=is_forced,
                counts=_counts(sequence) if is_first or finish is not None else None,
                finish=finish,
            )
        )
        if finish is not None:
            sequence.is_over = True
            state.live -= 1


def _counts(sequence: Sequence) -> Counts:
    prompt, cached = len(sequence.state.job.prompt), sequence.state.cached
    return Counts(
        prompt=prompt,
        cached=cached or 0,
        computed=0 if cached is None else prompt - cached,
        generated=sequence.at,
    )
