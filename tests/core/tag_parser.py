"""A small whole dialect for tests: `<r>..</r>` is reasoning, `<c>NAME|ARGUMENTS</c>` is a call."""

from __future__ import annotations

from collections.abc import Sequence

from tokenwire.core.events import PartDelta, PartEnd, PartKind, PartStart
from tokenwire.core.ports.dialect import Parser, ParserMaker, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece

MARKERS = {"<r>": "reasoning", "</r>": "text", "<c>": "tool_call", "</c>": "text"}
PHASES: dict[PartKind, Phase] = {
    "text": "content",
    "reasoning": "reasoning",
    "tool_call": "tool_call",
}


class TagParser(Parser):
    """One character at a time: slow, and so plain that it can be seen to be right."""

    def __init__(self, setup: ParserSetup) -> None:
        self._choice = setup.choice
        self._mode: PartKind = "text"
        self._open: PartKind | None = None
        self._held = ""
        self._name: str | None = None
        self._read = 0

    @property
    def phase(self) -> Phase:  # type: ignore[override]
        return PHASES[self._mode]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        out: list[PartEvent] = []
        for character in piece.text:
            self._read += 1
            self._held += character
            while self._held and not any(m.startswith(self._held) for m in MARKERS):
                self._say(self._held[0], self._read - len(self._held) + 1, out)
                self._held = self._held[1:]
            if self._held in MARKERS:
                self._switch(MARKERS[self._held], out)  # type: ignore[arg-type]
                self._held = ""
        return out

    def flush(self) -> Sequence[PartEvent]:
        out: list[PartEvent] = []
        while self._held:
            self._say(self._held[0], self._read - len(self._held) + 1, out)
            self._held = self._held[1:]
        self._close(out, complete=self._open != "tool_call")
        return out

    def save(self) -> object:
        return [self._mode, self._open, self._held, self._name, self._read]

    def restore(self, state: object) -> None:
        self._mode, self._open, self._held, self._name, self._read = state  # type: ignore[misc]

    def _switch(self, mode: PartKind, out: list[PartEvent]) -> None:
        self._close(out, complete=True)
        self._mode = mode
        self._name = "" if mode == "tool_call" else None

    def _close(self, out: list[PartEvent], *, complete: bool) -> None:
        if self._open is not None:
            out.append(PartEnd(self._choice, complete))
            self._open = None

    def _say(self, character: str, end: int, out: list[PartEvent]) -> None:
        if self._mode == "tool_call" and self._open is None:
            if character != "|":
                self._name = (self._name or "") + character
                return
            self._open = "tool_call"
            out.append(PartStart(self._choice, "tool_call", name=self._name or ""))
            return
        if self._open is None:
            self._open = self._mode
            out.append(PartStart(self._choice, self._mode))
        last = out[-1] if out else None
        if isinstance(last, PartDelta) and last.end == end - 1:
            out[-1] = PartDelta(self._choice, last.text + character, end)
        else:
            out.append(PartDelta(self._choice, character, end))


class TagMaker(ParserMaker):
    markers = tuple(MARKERS)
    reasoning_start = "<r>"
    reasoning_end = "</r>"

    def parser(self, setup: ParserSetup) -> Parser:
        return TagParser(setup)
