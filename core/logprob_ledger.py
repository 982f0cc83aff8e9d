"""Which tokens' log probabilities belong to which visible text. Counts characters; knows no text.

Tokens enter with the length of their text; the parser's deltas say which stretch of the raw text
they are; visible ones wait until the stop strings let their first character out. So the entries
sent are those of the ids whose text the client sees, in order, each once; ids of reasoning, tool
calls, markers and of text cut off by a stop string have none.
"""

from __future__ import annotations

from collections import deque
from typing import final

import msgspec

from tokenwire.core.tokens import IdLogprobs

__all__ = ("LogprobLedger",)

Packed = tuple[int, float, int, tuple[tuple[int, float], ...]]
"""An entry without its field names."""

State = tuple[int, int, int, list[tuple[int, int, Packed]], list[tuple[int, Packed]]]


@final
class LogprobLedger:
    """`add` each token, `read` each delta of the parser, `emit` each stretch that goes out."""

    __slots__ = ("_emitted", "_raw", "_read", "_shown", "_visible")

    def __init__(self) -> None:
        self._raw = 0  # Characters of all tokens so far.
        self._visible = 0  # Visible characters read so far.
        self._emitted = 0  # Visible characters sent so far.
        self._read: deque[tuple[int, int, IdLogprobs]] = deque()  # (start, end) in the raw text.
        self._shown: deque[tuple[int, IdLogprobs]] = deque()  # Start in the visible text.

    def add(self, entry: IdLogprobs, length: int) -> None:
        """A token whose text (of the characters it completes) is `length` long."""
        start, end = self._raw, self._raw + length
        if length:
            # Why: ids that brought only bytes belong to the character that this one completes.
            index = len(self._read) - 1
            while index >= 0 and self._read[index][0] == self._read[index][1] == start:
                self._read[index] = (start, end, self._read[index][2])
                index -= 1
        self._read.append((start, end, entry))
        self._raw = end

    def read(self, end: int, length: int, *, visible: bool) -> None:
        """The parser gave a delta of `length` characters that ends at raw character `end`."""
        start = end - length
        while self._read and self._read[0][0] < end:
            token_start, token_end, entry = self._read.popleft()
            if visible and token_end > start:
                self._shown.append((self._visible + max(0, token_start - start), entry))
        if visible:
            self._visible += length

    def emit(self, length: int) -> tuple[IdLogprobs, ...]:
        """The entries of the next `length` visible characters, which go out now."""
        self._emitted += length
        tokens: list[IdLogprobs] = []
        while self._shown and self._shown[0][0] < self._emitted:
            tokens.append(self._shown.popleft()[1])
        return tuple(tokens)

    def save(self) -> object:
        counts = (self._raw, self._visible, self._emitted)
        read = [(start, end, _packed(entry)) for start, end, entry in self._read]
        return (*counts, read, [(start, _packed(entry)) for start, entry in self._shown])

    def restore(self, state: object) -> None:
        saved = msgspec.convert(state, State)
        self._raw, self._visible, self._emitted = saved[:3]
        self._read = deque((start, end, IdLogprobs(*entry)) for start, end, entry in saved[3])
        self._shown = deque((start, IdLogprobs(*entry)) for start, entry in saved[4])


def _packed(entry: IdLogprobs) -> Packed:
    return entry.id, entry.logprob, entry.rank, entry.top
