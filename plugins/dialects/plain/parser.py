"""Parser `plain`: everything is text, but for special tokens, which are never shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from tokenwire.core.events import PartDelta, PartEnd, PartStart
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece

__all__ = ("PlainMaker", "PlainParser")


@final
class PlainParser(Parser):
    """Holds nothing back."""

    __slots__ = ("_choice", "_is_open", "_read", "phase")

    def __init__(self, setup: ParserSetup) -> None:
        self._choice = setup.choice
        self._is_open = False
        self._read = 0
        self.phase: Phase = "content"

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if not text:
            return ()
        self._read = end = self._read + len(text)
        if piece.special:
            return ()
        delta = PartDelta(self._choice, text, end)
        if self._is_open:
            return (delta,)
        self._is_open = True
        return (PartStart(self._choice, "text"), delta)

    def flush(self) -> Sequence[PartEvent]:
        if not self._is_open:
            return ()
        self._is_open = False
        return (PartEnd(self._choice),)

    def save(self) -> object:
        return [self._is_open, self._read]

    def restore(self, state: object) -> None:
        self._is_open, self._read = msgspec.convert(state, tuple[bool, int])


@final
class PlainMaker(ParserMaker):
    """No markers and no stop strings."""

    reads_calls = False

    def parser(self, setup: ParserSetup) -> Parser:
        return PlainParser(setup)
