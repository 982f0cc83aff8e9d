"""What a call wants to be told of tokens beside its text: ids, and what of the prompt. No wire.

`Report` fills in what the first event says of the prompt; `Telling` stands before a choice's
decoder and puts the ids of each step before the events that they made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from msgspec.structs import replace

from tokenwire.core.decoder import Decoder
from tokenwire.core.echo import described
from tokenwire.core.events import Event, Logprobs, Started
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, IdLogprobs

__all__ = ("Report", "Telling")


@final
class Report:
    """Of one prompt."""

    def __init__(self, tokenizer: Tokenizer, ids: TokenIds | None, *, logprobs: bool) -> None:
        """`ids` None: they are not asked for."""
        self._tokenizer = tokenizer
        self._ids = ids
        self._logprobs = logprobs

    def fill(self, started: Started, given: Sequence[IdLogprobs | None] | None) -> Started:
        """`given`: the engine's log probabilities, one a prompt id."""
        ids = () if self._ids is None else tuple(self._ids)
        entries = given or () if self._logprobs else ()
        logprobs = tuple(each and described(self._tokenizer, each) for each in entries)
        return replace(started, prompt_ids=ids, prompt_logprobs=logprobs)


@final
class Telling:
    """A decoder that tells its ids too. It has the surface of `decoder.Decoder`."""

    __slots__ = ("_decoder",)

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    @property
    def generated(self) -> int:
        return self._decoder.generated

    @property
    def reasoning_tokens(self) -> int:
        return self._decoder.reasoning_tokens

    @property
    def stopped(self) -> str | None:
        return self._decoder.stopped

    def push(self, ids: Sequence[int], logprobs: Sequence[IdLogprobs] = ()) -> list[Event]:
        before = self._decoder.generated
        events = self._decoder.push(ids, logprobs)
        # Why not all: those behind a stop string are no part of the answer.
        count = self._decoder.generated - before
        if not count:
            return events
        return [Logprobs(self._decoder.choice, (), tuple(ids[:count])), *events]

    def finish(self, finish: Finish) -> list[Event]:
        return self._decoder.finish(finish)

    def save(self) -> object:
        return self._decoder.save()

    def restore(self, state: object) -> None:
        self._decoder.restore(state)
