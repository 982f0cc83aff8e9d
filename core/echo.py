"""A prompt said before its answer: its text, and its ids' log probabilities. Knows no wire."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import final

from tokenwire.core.events import Event, Logprobs, PartDelta, PartEnd, PartStart, TokenLogprob
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Prompt
from tokenwire.core.tokens import IdLogprobs

__all__ = ("Echo", "described", "spelled")


def described(tokenizer: Tokenizer, entry: IdLogprobs) -> TokenLogprob:
    """An entry with the bytes of its ids; b"" for ids that spell nothing."""

    def token(id_: int, value: float, top: tuple[TokenLogprob, ...] = ()) -> TokenLogprob:
        try:
            data = tokenizer.token_bytes(id_)
        except KeyError:
            data = b""  # Why: an engine's padded vocabulary may rank ids that spell nothing.
        return TokenLogprob(id_, data.decode("utf-8", "replace"), data, value, top)

    return token(entry.id, entry.logprob, tuple(token(id_, value) for id_, value in entry.top))


def spelled(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Each id's own text; half a character is U+FFFD."""
    return tuple(described(tokenizer, IdLogprobs(id_, nan)).text for id_ in ids)


@final
class Echo:
    """Of one prompt; every choice of it begins with `events`."""

    def __init__(self, prompt: Prompt, tokenizer: Tokenizer, *, logprobs: bool) -> None:
        self._prompt = prompt
        self._tokenizer = tokenizer
        self._logprobs = logprobs

    def events(self, choice: int, given: Sequence[IdLogprobs | None] | None) -> list[Event]:
        """One text part. `given`: the engine's, one a prompt id. A token without a log probability
        (the first has none) has NaN."""
        text = self._prompt.text
        if not text:
            return []
        out: list[Event] = [PartStart(choice, "text")]
        if self._logprobs:
            entries = given or [None] * len(self._prompt.ids)
            tokens = tuple(
                described(self._tokenizer, entry or IdLogprobs(id_, nan))
                for id_, entry in zip(self._prompt.ids, entries, strict=True)
            )
            out.append(Logprobs(choice, tokens))
        return [*out, PartDelta(choice, text), PartEnd(choice)]
