"""One call's answer on its way through the gateway: token deltas in, events out. Pure.

Checks that the engine's stream has neither gap nor overlap, decodes each choice, says which choices
to stop, and counts. Knows no protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from tokenwire.core.choice_ids import ChoiceDecoder, History
from tokenwire.core.echo import Echo
from tokenwire.core.events import Event, Failed, Started, Usage
from tokenwire.core.failures import INTERNAL, failure
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.token_report import Report
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    KvPin,
    TokenDelta,
)

__all__ = ("Generation",)

NO_COUNTS = Counts()
SHORT_S = 300


def stored(pins: Sequence[KvPin], cached: int) -> tuple[int, int]:
    """Tokens up to the last pin that were not in the cache, and those of them whose pin lasts
    longer than five minutes."""
    total = long = 0
    start = cached
    for pin in pins:
        tokens = max(0, pin.tokens - start)
        total += tokens
        long += tokens if (pin.ttl_s or 0) > SHORT_S else 0
        start = max(start, pin.tokens)
    return total, long


@final
class Generation:
    """`push` each delta. `is_over` after the last event; `unwanted` names choices to abort."""

    __slots__ = (
        "_counts",
        "_decoders",
        "_echoes",
        "_fingerprint",
        "_finished",
        "_histories",
        "_left",
        "_per_prompt",
        "_pins",
        "_plainly",
        "_report",
        "_started",
        "computed_tokens",
        "failed",
        "failed_finish",
        "is_over",
        "unwanted",
        "usage",
    )

    def __init__(
        self,
        decoders: Sequence[ChoiceDecoder],
        fingerprint: str,
        *,
        prompts: int = 1,
        echoes: Sequence[Echo] = (),
        pins: Sequence[KvPin] = (),
        report: Report | None = None,
    ) -> None:
        """`prompts` have equally many of the choices each, in their order; `echoes`: one a prompt,
        or none; `pins`: what of the first prompt the client marked to be kept; `report`: what to
        tell of its tokens."""
        self._decoders = decoders
        self._fingerprint = fingerprint
        self._per_prompt = len(decoders) // prompts
        self._echoes = echoes
        self._pins = pins
        self._report = report
        self._counts = [NO_COUNTS] * prompts
        self._histories = [History() for _ in decoders]
        self._finished = [False] * len(decoders)
        self._left = len(decoders)
        self._started = False
        self._plainly = False
        """Whether it has begun, and has one choice that has not ended."""
        self.is_over = False
        self.unwanted: list[int] = []
        """Choices that have what they need though the engine goes on: to be aborted (stop_text)."""
        self.usage: Usage | None = None
        self.computed_tokens = 0
        self.failed: Failed | None = None
        self.failed_finish: Finish | None = None
        """The engine's own words on a failure, for the log."""

    def push(self, delta: TokenDelta) -> list[Event]:
        """Take one delta, of whichever choice."""
        choice = delta.choice
        # Why first: nineteen deltas in twenty are ids that go on, and nothing else.
        if (
            self._plainly
            and choice == 0
            and delta.finish is None
            and delta.counts is None
            and (history := self._histories[0]).length == delta.at
            and (decoder := self._decoders[0]).stopped is None
        ):
            history.extend(delta.ids)
            found = decoder.push(delta.ids, delta.logprobs)
            if decoder.stopped is None:
                return found
            self.unwanted.append(choice)
            found += decoder.finish(STOP_TEXT)
            self._end(choice, found)
            return found
        if self.is_over or not 0 <= choice < len(self._decoders) or self._finished[choice]:
            return []
        events: list[Event] = []
        if delta.counts is not None:
            self._counts[choice // self._per_prompt] = delta.counts
        finish = delta.finish
        if finish is not None and (failed := failure(finish)) is not None:
            self.failed_finish = finish
            return [self._fail(failed)]
        if not self._started:
            self._started = True
            self._plainly = len(self._decoders) == 1 and not self._echoes
            counts = self._counts[choice // self._per_prompt]
            self.computed_tokens = counts.computed
            made, long = stored(self._pins, counts.cached)
            begun = Started(counts.prompt, counts.cached, self._fingerprint, made, long)
            if self._report is not None:
                begun = self._report.fill(begun, delta.prompt_logprobs)
            events.append(begun)
        decoder = self._decoders[choice]
        if self._echoes and delta.at == 0 and not self._histories[choice].has_begun:
            self._histories[choice].has_begun = True
            echo = self._echoes[choice // self._per_prompt]
            events += echo.events(choice, delta.prompt_logprobs)
        ids: Sequence[int] = delta.ids
        logprobs = delta.logprobs
        history = self._histories[choice]
        if delta.at != history.length:
            overlap = history.length - delta.at
            if not history.agrees(delta.at, ids):
                self.failed_finish = Finish(
                    FinishKind.ERROR,
                    FinishCause.INTERNAL,
                    message=f"choice {choice}: a delta at {delta.at} with {len(ids)} ids does not"
                    f" go on from the {history.length} tokens that are held",
                )
                return [*events, self._fail(Failed(*INTERNAL))]
            ids, logprobs = ids[overlap:], logprobs[overlap:]
        if ids:
            history.extend(ids)
        if ids and decoder.stopped is None:
            events += decoder.push(ids, logprobs)
            if decoder.stopped is not None and finish is None:
                self.unwanted.append(choice)
        if finish is not None or decoder.stopped is not None:
            events += decoder.finish(finish or STOP_TEXT)
            self._end(choice, events)
        return events

    def _end(self, choice: int, events: list[Event]) -> None:
        self._finished[choice] = True
        self._plainly = False
        self._left -= 1
        if self._left == 0:
            self.is_over = True
            self.usage = self.count()
            events.append(self.usage)

    @property
    def stopped(self) -> tuple[int, ...]:
        """Choices that ended here, by a stop string or for want of need, not by the engine."""
        return tuple(k for k, decoder in enumerate(self._decoders) if decoder.stopped is not None)

    def answers(self) -> tuple[TokenIds, ...]:
        """Each choice's ids, up to the one that completed a stop string; none after a restore."""
        if any(history.is_partial for history in self._histories):
            return ()
        pairs = zip(self._histories, self._decoders, strict=True)
        return tuple(history.ids(decoder.generated) for history, decoder in pairs)

    def end(self, finish: Finish) -> Failed:
        """The whole answer failed from outside, whatever its choices had."""
        failed = failure(finish) or Failed(*INTERNAL)
        self.failed_finish = finish
        return self._fail(failed)

    def _fail(self, failed: Failed) -> Failed:
        self.is_over = True
        self._plainly = False
        self.failed = failed
        self.usage = self.count()
        return failed

    def count(self) -> Usage:
        """Tokens so far."""
        made, long = stored(self._pins, self._counts[0].cached) if self._started else (0, 0)
        return Usage(
            prompt_tokens=sum(counts.prompt for counts in self._counts),
            completion_tokens=sum(decoder.generated for decoder in self._decoders),
            cached_tokens=sum(counts.cached for counts in self._counts),
            reasoning_tokens=sum(decoder.reasoning_tokens for decoder in self._decoders),
            cache_creation_tokens=made,
            cache_creation_long_tokens=long,
        )

    def save(self) -> object:
        """State as msgpack-able builtins, flat in the answer's length."""
        return (
            msgspec.to_builtins(self._counts),
            [(history.length, history.has_begun) for history in self._histories],
            self._finished,
            self._started,
            self.computed_tokens,
            [decoder.save() for decoder in self._decoders],
        )

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no generation's state."""
        counts, histories, finished, started, computed, decoders = msgspec.convert(
            state,
            tuple[list[Counts], list[tuple[int, bool]], list[bool], bool, int, list[object]],
        )
        if not len(histories) == len(finished) == len(decoders) == len(self._decoders):
            raise msgspec.ValidationError(
                f"wanted the state of {len(self._decoders)} choices, got {len(decoders)}"
            )
        self._counts, self._finished = counts, finished
        self._histories = [History(length, has_begun=begun) for length, begun in histories]
        self._started, self.computed_tokens = started, computed
        self._left = finished.count(False)
        for decoder, saved in zip(self._decoders, decoders, strict=True):
            decoder.restore(saved)


STOP_TEXT = Finish(FinishKind.ABORT, FinishCause.STOP_TEXT, TokenIds())
