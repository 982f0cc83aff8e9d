"""One choice's ids passed on as ids: for calls that want no text. Pure; knows no tokenizer.

It has the surface of `decoder.Decoder`: an answer in ids is read by the same generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import final

import msgspec

from tokenwire.core.events import Event, Finished, FinishReason, Logprobs, TokenLogprob
from tokenwire.core.tokens import Finish, FinishCause, FinishKind, IdLogprobs

__all__ = ("IdDecoder",)


@final
class IdDecoder:
    """Each push gives one Logprobs event, whose tokens have ids; NaN where there are no values."""

    __slots__ = ("choice", "generated", "reasoning_tokens", "stopped")

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.generated = 0
        self.reasoning_tokens = 0
        self.stopped: str | None = None

    def push(self, ids: Sequence[int], logprobs: Sequence[IdLogprobs] = ()) -> list[Event]:
        self.generated += len(ids)
        if logprobs:
            return [Logprobs(self.choice, tuple(map(_token, logprobs)))]
        return [Logprobs(self.choice, tuple(TokenLogprob(id_, "", b"", nan) for id_ in ids))]

    def finish(self, finish: Finish) -> list[Event]:
        reason: FinishReason = "stop"
        if finish.kind is FinishKind.LENGTH:
            reason = "context_length" if finish.cause is FinishCause.CONTEXT else "length"
        elif finish.kind is FinishKind.ABORT:
            reason = "cancelled"
        return [Finished(self.choice, reason)]

    def save(self) -> object:
        return self.generated

    def restore(self, state: object) -> None:
        """Raises msgspec.ValidationError for what is no such state."""
        self.generated = msgspec.convert(state, int)


def _token(entry: IdLogprobs) -> TokenLogprob:
    top = tuple(TokenLogprob(id_, "", b"", value) for id_, value in entry.top)
    return TokenLogprob(entry.id, "", b"", entry.logprob, top)
