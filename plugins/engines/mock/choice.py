"""One choice of a job as a machine: each `step` says what one engine step brings. Knows no time."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import final

from tokenwire.core.progress import Progress
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import (
    Finish,
    FinishCause,
    FinishKind,
    IdLogprobs,
    LogprobSettings,
    TokenJob,
)
from tokenwire.plugins.engines.mock.chooser import acts, choose, penalises
from tokenwire.plugins.engines.mock.lines import PLAUSIBLE, Lines

__all__ = ("Choice", "fault")


def fault(cause: str, message: str) -> Finish:
    """An engine's failure in the middle: another engine may do better, but the work is lost."""
    return Finish(FinishKind.ERROR, FinishCause(cause), retryable=True, message=message)


@final
class Choice:
    """`step()` returns the ids to send; `finish`, `pause_s` and `is_forced` tell of that step."""

    __slots__ = (
        "_acts",
        "_at",
        "_is_plain",
        "_job",
        "_left",
        "_likely",
        "_lines",
        "_progress",
        "_prompt",
        "_said",
        "_steps",
        "_vocab_size",
        "finish",
        "is_forced",
        "output",
        "pause_s",
    )

    def __init__(
        self,
        job: TokenJob,
        lines: Lines,
        progress: Progress,
        *,
        likely: Sequence[int],
        vocab_size: int,
    ) -> None:
        self._job = job
        self._lines = lines
        self._steps = lines.steps
        self._progress = progress
        self._likely = likely
        self._vocab_size = vocab_size
        has_masks = job.stopping.min_tokens > 0 and len(job.stopping.stop_ids) > 0
        self._acts = lines.again and (acts(job.sampling) or has_masks)
        sequences = job.stopping.sequences
        self._is_plain = not self._acts and job.reasoning is None and not sequences
        self._at = 0
        self._left = NO_IDS
        """What remains of a step of several ids."""
        self.output: array[int] = array("I", job.resume_ids)
        """All ids so far, of earlier attempts and held back ones too: what is in the KV cache."""
        # Why counted along: to count again for every id would take the square of the output.
        self._said: Counter[int] | None = None
        self._prompt: frozenset[int] = frozenset()
        if self._acts and penalises(job.sampling):
            self._said = Counter(self.output)
            self._prompt = frozenset(job.prompt)
        self.finish = progress.finish
        self.pause_s = 0.0
        self.is_forced = False
        self._skip(len(job.resume_ids))

    def step(self) -> TokenIds:
        """The ids that this step brings; none while they are held back or it pauses."""
        if self._is_plain and not self._left and self._at < len(self._steps):
            ids = self._steps[self._at].ids
            if len(ids) == 1:
                self._at += 1
                self.output.append(ids[0])
                sent = self._progress.push(ids[0])
                self.finish = self._progress.finish
                return ids if sent else NO_IDS
        return self._step()

    def _step(self) -> TokenIds:
        forced = self._progress.forced()
        self.is_forced = forced is not None
        self.pause_s = 0.0
        if forced is not None:
            return self._force(forced)
        if self._left:
            return self._push(self._left)
        if self._at >= len(self._steps):
            return self._end()
        step = self._steps[self._at]
        self._at += 1
        if step.error is not None:
            self.finish = fault(step.error, f"the script said so: {step.error}")
            return NO_IDS
        self.pause_s = step.sleep_s
        return self._push(step.ids)

    def logprobs(self, ids: Sequence[int], at: int, asked: LogprobSettings) -> list[IdLogprobs]:
        """Of the ids at output positions from `at`: the script's, else plausible ones."""
        return [self._logprob(id, at + index, asked) for index, id in enumerate(ids)]

    def prompt_logprobs(self, asked: LogprobSettings) -> tuple[IdLogprobs | None, ...]:
        asked = LogprobSettings(top=asked.prompt or 0, ids=asked.ids)
        values = itertools.cycle(PLAUSIBLE)
        return (None, *(self._rank(id, next(values), asked) for id in self._job.prompt[1:]))

    def _say(self, id: int) -> None:
        self.output.append(id)
        if self._said is not None:
            self._said[id] += 1

    def _force(self, id: int) -> TokenIds:
        self._say(id)
        sent = TokenIds(self._progress.push(id))
        self.finish = self._progress.finish
        return sent

    def _push(self, ids: TokenIds) -> TokenIds:
        progress = self._progress
        sent: list[int] = []
        self._left = NO_IDS
        for index, expected in enumerate(ids):
            id = self._choose(expected) if self._acts else expected
            self._say(id)
            sent.extend(progress.push(id))
            if progress.finish is not None or progress.forced() is not None:
                self._left = TokenIds(ids[index + 1 :])
                break
        self.finish = progress.finish
        return TokenIds(sent)

    def _end(self) -> TokenIds:
        """After the last step."""
        lines, progress = self._lines, self._progress
        if lines.finish == "abort":
            self.finish = fault("lost", "the script said so: abort")
            return NO_IDS
        if lines.again and (lines.eos or self._must_go_on()):
            self._at = 0
            return self.step() if self._must_go_on() else self._push(lines.eos)
        sent = progress.cut() if lines.finish == "length" else progress.stop(lines.eos)
        self.finish = progress.finish
        return TokenIds(sent)

    def _must_go_on(self) -> bool:
        stopping = self._job.stopping
        return stopping.ignore_eos or self._progress.total < stopping.min_tokens

    def _choose(self, expected: int) -> int:
        return choose(
            expected,
            sampling=self._job.sampling,
            likely=self._likely,
            vocab_size=self._vocab_size,
            prompt=self._prompt,
            said=self._said or {},
            position=len(self.output),
            masked=self._progress.masked(),
        )

    def _skip(self, count: int) -> None:
        """Go to where `count` ids have been said."""
        steps = self._steps
        while count > 0 and steps:
            if self._at >= len(steps):
                if not self._lines.again:
                    return
                self._at = 0
            ids = steps[self._at].ids
            self._at += 1
            self._left = TokenIds(ids[count:])
            count -= len(ids)

    def _logprob(self, id: int, position: int, asked: LogprobSettings) -> IdLogprobs:
        told = self._lines.logprobs
        values = told[position] if position < len(told) else PLAUSIBLE[position % len(PLAUSIBLE)]
        return self._rank(id, values, asked)

    def _rank(self, id: int, values: Sequence[float], asked: LogprobSettings) -> IdLogprobs:
        """The first value is the chosen id's, the rest are the likeliest ids'."""
        chosen, *top = values[: asked.top + 2]
        others = (other for other in self._likely if other != id)
        ranked: list[tuple[int, float]] = [(id, chosen)] if chosen not in top else []
        for value in top:
            is_chosen = value == chosen and all(entry[0] != id for entry in ranked)
            other = id if is_chosen else next(others, None)
            if other is not None:
                ranked.append((other, value))
        ranked.sort(key=lambda entry: -entry[1])
        rank = next(index for index, entry in enumerate(ranked) if entry[0] == id) + 1
        shown = ranked[: asked.top]
        named = dict(shown)
        known = dict(ranked)
        lowest = min(values[-1], chosen) - 10
        shown += [(other, known.get(other, lowest)) for other in asked.ids if other not in named]
        return IdLogprobs(id, chosen, rank, tuple(shown))
