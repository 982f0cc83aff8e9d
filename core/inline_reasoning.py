"""A parser whose reasoning is text, for clients that want what the model wrote in one piece. Pure.

Each reasoning part becomes a text part between the family's own markers. A block that the prompt
has opened has no opening marker in the answer, and none is put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec
from msgspec.structs import replace

from tokenwire.core.events import PartDelta, PartEnd, PartStart
from tokenwire.core.ports.dialect import Parser, PartEvent
from tokenwire.core.prompt import Phase, Piece

__all__ = ("InlineReasoning",)


@final
class InlineReasoning(Parser):
    """`start` and `end`: the family's markers."""

    def __init__(self, parser: Parser, choice: int, start: str, end: str) -> None:
        self._parser = parser
        self._choice = choice
        self._start, self._end = start, end
        self._is_open = False
        self._began = parser.phase == "reasoning"
        """Whether the block to come was opened by the prompt."""

    @property
    def phase(self) -> Phase:  # type: ignore[override]
        """Of the parser within: reasoning is still counted as such."""
        return self._parser.phase

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        return self._turned(self._parser.push(piece), self._end)

    def flush(self) -> Sequence[PartEvent]:
        # Why no marker: a block that the end of the answer cuts off was not closed.
        return self._turned(self._parser.flush(), "")

    def save(self) -> object:
        return [self._parser.save(), self._is_open, self._began]

    def restore(self, state: object) -> None:
        inner, self._is_open, self._began = msgspec.convert(state, tuple[object, bool, bool])
        self._parser.restore(inner)

    def _turned(self, events: Sequence[PartEvent], end: str) -> Sequence[PartEvent]:
        if not events or (not self._is_open and all(type(each) is PartDelta for each in events)):
            return events
        out: list[PartEvent] = []
        for event in events:
            if isinstance(event, PartStart) and event.kind == "reasoning":
                self._is_open = True
                out.append(replace(event, kind="text"))
                if self._start and not self._began:
                    out.append(PartDelta(self._choice, self._start))
                self._began = False
            elif isinstance(event, PartEnd) and self._is_open:
                self._is_open = False
                if end:
                    out.append(PartDelta(self._choice, end))
                out.append(event)
            else:
                out.append(event)
        return out
