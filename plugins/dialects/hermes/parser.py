"""Reads Hermes-style answers: <think> blocks, then text, with JSON tool calls in <tool_call> tags.

Reasoning is recognised at the start of the answer only, or where its marker is a special token. A
call ends with its JSON, whatever its strings spell. White space around calls is no text. One run of
newlines next to a reasoning marker or behind a call, and one newline before a call, belong to the
markers. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.tags import PARTIAL
from tokenwire.plugins.dialects.hermes.call import CallReader, Outcome
from tokenwire.plugins.dialects.hermes.draft import Verdict, judge
from tokenwire.plugins.dialects.hermes.markers import (
    AGAIN,
    BETWEEN,
    CALL,
    CALL_END,
    CALLS,
    LATER,
    OPENING,
    PHASES,
    REASONING,
    THINK,
    THINK_END,
)
from tokenwire.plugins.dialects.hermes.spacing import Spacing
from tokenwire.plugins.dialects.hermes.state import ParserState, State

__all__ = ("HermesParser",)


@final
class HermesParser(Parser):
    """A step takes the buffer from an index and gives the next one; it sets `_waits` where it needs
    more text to decide, and then the rest of the buffer is held.
    """

    def __init__(self, setup: ParserSetup, *, thinks: bool = True) -> None:
        self._choice = setup.choice
        self._thinks = thinks
        self._reasons = thinks and setup.reasoning
        self._calls = setup.parse_tools
        self._emit = Emitter(setup.choice)
        self._reader: CallReader | None = None
        self._state: State = "reasoning" if self._reasons and setup.phase == "reasoning" else "text"
        self._is_opening = True  # nothing but white space has come
        self._space = Spacing(self._emit, trims=self._state == "reasoning")
        self._had_call = False
        self._waits = False
        self._held = ""  # the beginning of a marker, or a draft
        self._read = 0  # raw characters that came
        self._fast = ""  # the state, when text without a sign of its end can go straight out
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if self._fast and not piece.special:
            if self._fast == "call":
                is_plain = '"' not in text and "\\" not in text
            else:
                is_plain = "<" not in text and text[-1:] != "\n"
            if is_plain:
                if not text:
                    return ()
                self._read = end = self._read + len(text)
                return (PartDelta(self._choice, text, end),)
        return self._push(piece)

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        if self._reader is not None:
            self._break_off(self._reader, self._read, is_last=True)
        blank, self._space.blank = self._space.blank, ""
        kind = self._emit.is_open
        if kind == "text" or (not kind and not self._had_call and self._state == "text"):
            self._emit.text("text", blank, self._read)
        self._emit.close()
        return self._settle()

    def _push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if piece.special and not self._is_marker(text):
            if self._state != "draft":
                self._hold(self._held, is_final=True)
            self._read += len(text)
            return self._settle()
        if piece.special and text in (THINK, THINK_END) and self._state in ("text", "after"):
            self._hold(self._held, is_final=True)
            self._read += len(text)
            self._state = "text"
            self._turn(text)
            return self._settle()
        self._read += len(text)
        self._hold(self._held + text)
        return self._settle()

    def _is_marker(self, text: str) -> bool:
        return text in (CALL, CALL_END) or (self._thinks and text in (THINK, THINK_END))

    def _settle(self) -> Sequence[PartEvent]:
        if self._held or self._space.blank or self._is_opening:
            self._fast = ""
        elif self._reader is not None:
            self._fast = "call" if self._reader.is_in_argument_string else ""
        else:
            self._fast = self._state if self._state == self._emit.is_open else ""
        self.phase = PHASES[self._state]
        return self._emit.take()

    def _hold(self, buffer: str, *, is_final: bool = False) -> None:
        """Take steps through `buffer`, and hold what has to wait for more."""
        at = 0
        self._waits = False
        while at < len(buffer) and not self._waits:
            at = self._step(buffer, at, is_final)
        self._held = buffer[at:]

    def _step(self, buffer: str, at: int, is_final: bool) -> int:
        match self._state:
            case "text":
                return self._text(buffer, at, is_final)
            case "reasoning":
                return self._reasoning(buffer, at, is_final)
            case "draft":
                return self._draft(buffer, at, is_final)
            case "call":
                return self._call(buffer, at, is_final)
            case _:
                return self._after(buffer, at, is_final)

    def _end(self, buffer: str, at: int) -> int:
        """How many raw characters had been read at `at`."""
        return self._read - len(buffer) + at

    def _text(self, buffer: str, at: int, is_final: bool) -> int:
        if self._is_opening and buffer[at].isspace():
            first = at
            while first < len(buffer) and buffer[first].isspace():
                first += 1
            self._say(buffer[at:first], self._end(buffer, first))
            return first
        tags = OPENING[self._thinks, self._calls] if self._is_opening else LATER[self._calls]
        found, marker = tags.find(buffer, at, is_final=is_final)
        if found > at:
            if self._is_opening:
                # The first visible character: from here on <think> is text.
                self._is_opening = False
                return at
            self._say(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        self._turn(marker)
        return at + len(marker)

    def _turn(self, marker: str) -> None:
        """A marker in text: into a call, into reasoning, or a stray end of reasoning."""
        if marker == CALL:
            # Why not begin(): the white space before the call is text if no call comes of it.
            self._space.trims = True
            self._begin_call(CALL)
            return
        self._space.begin()
        if marker == THINK and self._reasons:
            self._emit.close()
            self._state, self._is_opening = "reasoning", False

    def _say(self, text: str, end: int) -> None:
        can_wait = self._emit.is_open != "text" and (self._calls or self._is_opening)
        self._space.say(text, end, can_wait=can_wait, before_calls=self._calls)

    def _reasoning(self, buffer: str, at: int, is_final: bool) -> int:
        if self._is_opening:
            if buffer[at] == "\n":
                return at + 1
            # The prompt has opened the block; a model may open it once more.
            marker = AGAIN.at(buffer, at, is_final=is_final)
            self._waits = marker == PARTIAL
            if marker:
                self._is_opening = self._waits
                return at if self._waits else at + len(marker)
        found, marker = REASONING[self._calls].find(buffer, at, is_final=is_final)
        if found > at:
            self._think(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        if marker == CALL:
            self._state = "draft"
            return at
        self._close_reasoning()
        return at + len(marker)

    def _think(self, text: str, end: int) -> None:
        self._is_opening = False
        self._space.think(text, end)

    def _close_reasoning(self) -> None:
        self._emit.close()
        self._space.begin()
        self._state, self._is_opening = "text", False

    def _draft(self, buffer: str, at: int, is_final: bool) -> int:
        verdict, stop = judge(buffer[at:], CALL, CALL_END, THINK_END)
        if verdict is Verdict.DRAFT:
            self._think(buffer[at : at + stop], self._end(buffer, at + stop))
            self._state = "reasoning"
            return at + stop
        if verdict is Verdict.CALL or is_final:
            self._close_reasoning()
        else:
            self._waits = True
        return at

    def _begin_call(self, held: str) -> None:
        self._reader, self._state = CallReader(held), "call"

    def _call(self, buffer: str, at: int, is_final: bool) -> int:
        reader = self._reader
        assert reader is not None
        base = self._end(buffer, 0)
        at, outcome = reader.feed(buffer, at, base, self._emit)
        if outcome is Outcome.ANGLE:
            marker = CALLS.at(buffer, at, is_final=is_final)
            if marker == PARTIAL:
                self._waits = True
            elif not marker:
                at, outcome = reader.skip_angle(at, base, self._emit)
            elif marker == CALL and reader.is_empty:
                reader.held += marker
                at += len(marker)
            else:
                outcome = Outcome.BROKEN
        if reader.is_started:
            self._had_call, self._is_opening = True, False
            self._space.blank = ""
        if outcome is Outcome.DONE:
            self._reader, self._state = None, "after"
        elif outcome is Outcome.BROKEN:
            self._break_off(reader, self._end(buffer, at))
        return at

    def _break_off(self, reader: CallReader, end: int, *, is_last: bool = False) -> None:
        """The call cannot go on: what was announced ends; what was not is text, but for a call
        that the answer's end cut off, of which there is nothing that could be sent."""
        self._reader, self._state = None, "after"
        if reader.is_started:
            self._emit.close(is_complete=reader.is_whole)
        elif not is_last:
            self._state, self._is_opening, self._space.trims = "text", False, False
            self._say(reader.held, end)
        self._had_call = self._had_call or is_last

    def _after(self, buffer: str, at: int, is_final: bool) -> int:
        if buffer[at] in BETWEEN:
            return at + 1
        if buffer[at] == "{":
            self._begin_call("")
            return at
        marker = CALLS.at(buffer, at, is_final=is_final)
        if marker == PARTIAL:
            self._waits = True
            return at
        self._state, self._space.trims = "text", True
        if marker == CALL:
            self._begin_call(CALL)
        return at + len(marker)

    def save(self) -> object:
        call = None if self._reader is None else self._reader.save()
        return msgspec.to_builtins(ParserState(
            self._state, self._is_opening, self._had_call, self._held, self._read,
            self._space.blank, self._space.trims, self._emit.is_open, call,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, ParserState)
        self._state, self._is_opening, self._had_call = was.state, was.is_opening, was.had_call
        self._held, self._read, self._emit.is_open = was.held, was.read, was.is_open
        self._space.blank, self._space.trims = was.blank, was.trims
        self._reader = None if was.call is None else CallReader.restored(was.call)
        self._settle()
