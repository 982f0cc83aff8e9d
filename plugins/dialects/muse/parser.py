"""Reads Muse's answers: messages with a header that says who each is for.

A message to `self` is reasoning; in all others, calls are read wherever their tags stand, and the
rest is text. An answer that begins with no header is text. Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter, OpenPart
from tokenwire.plugins.dialects._shared.tag_call import TagCall
from tokenwire.plugins.dialects._shared.tags import PARTIAL
from tokenwire.plugins.dialects.muse.markers import (
    BODY,
    CALLS,
    CALLS_END,
    FRAME,
    INVOKE,
    NO_HEADER,
    SPELLING,
    THOUGHT,
    recipient,
)

__all__ = ("MuseParser",)

State: TypeAlias = Literal["header", "text", "reasoning", "call", "after"]
"""`after`: behind a call, where white space and the end of the calls are no text."""
PHASES: Final[dict[State, Phase]] = {
    "header": "content", "text": "content", "reasoning": "reasoning",
    "call": "tool_call", "after": "tool_call",
}  # fmt: skip


class Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    state: State
    held: str
    read: int
    is_open: OpenPart
    is_lone: bool
    call: Any


@final
class MuseParser(Parser):
    """A step takes the buffer from an index and gives the next one; it sets `_waits` where it needs
    more text to decide, and then the rest of the buffer is held.
    """

    def __init__(self, setup: ParserSetup) -> None:
        self._choice = setup.choice
        self._tools = setup.tools
        self._body = BODY[setup.parse_tools]
        self._thought: State = "reasoning" if setup.reasoning else "text"
        self._emit = Emitter(setup.choice)
        self._state: State = self._thought if setup.phase == "reasoning" else "header"
        self._reader: CallReader | None = None
        self._is_lone = False
        self._held = ""
        self._read = 0
        self._waits = False
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        is_plain = not self._held and not piece.special and "<" not in text
        if is_plain and self._state == self._emit.is_open:
            self._read += len(text)
            return (PartDelta(self._choice, text, self._read),) if text else ()
        if piece.special and text not in FRAME and not _is_tag(text):
            self._hold(self._held, is_final=True)
            self._read += len(text)
        else:
            self._read += len(text)
            self._hold(self._held + text)
        self.phase = PHASES[self._state]
        return self._emit.take()

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        if self._reader is not None:
            reader = self._reader
            reader.stop(self._read, self._emit)
            self._end_call(reader, is_broken=True)
            if not reader.is_started:
                self._emit.text("text", reader.held, self._read)
        self._emit.close()
        self.phase = PHASES[self._state]
        return self._emit.take()

    def _hold(self, buffer: str, *, is_final: bool = False) -> None:
        at = 0
        self._waits = False
        while at < len(buffer) and not self._waits:
            at = self._step(buffer, at, is_final)
        self._held = buffer[at:]

    def _step(self, buffer: str, at: int, is_final: bool) -> int:
        match self._state:
            case "header":
                return self._header(buffer, at, is_final)
            case "call":
                return self._call(buffer, at, is_final)
            case "after":
                return self._after(buffer, at, is_final)
            case _:
                return self._text(buffer, at, is_final)

    def _end(self, buffer: str, at: int) -> int:
        """How many raw characters had been read at `at`."""
        return self._read - len(buffer) + at

    def _header(self, buffer: str, at: int, is_final: bool) -> int:
        who, begin = recipient(buffer, at)
        if who is None:
            # At the answer's end there is no message: the header was cut off.
            self._waits = not is_final
            return len(buffer) if is_final else at
        self._state = "text" if who != "self" else self._thought
        return at if who == NO_HEADER else begin

    def _text(self, buffer: str, at: int, is_final: bool) -> int:
        is_thought = self._state == "reasoning"
        tags = THOUGHT if is_thought else self._body
        kind: Literal["text", "reasoning"] = "reasoning" if is_thought else "text"
        found, marker = tags.find(buffer, at, is_final=is_final)
        if found > at:
            self._emit.text(kind, buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        if marker != FRAME[0]:
            return self._turn(marker, at)
        who = recipient(buffer, at)[0]
        if who == NO_HEADER:
            self._emit.text(kind, marker, self._end(buffer, at + len(marker)))
            return at + len(marker)
        # Why not yet, if it may be no header: the part goes on then.
        self._waits = who is None and not is_final
        if not self._waits:
            self._emit.close()
            self._state = "header"
        return at

    def _turn(self, marker: str, at: int) -> int:
        """A marker in a message: its end, or a call."""
        if marker in (CALLS, INVOKE):
            self._is_lone = marker == INVOKE
            self._reader = TagCall(SPELLING, self._tools, is_lone=self._is_lone)
            self._reader.held = marker
            self._state = "call"
            return at + len(marker)
        self._emit.close()
        self._state = "header"
        return at + len(marker)

    def _call(self, buffer: str, at: int, is_final: bool) -> int:
        reader = self._reader
        assert reader is not None
        at, outcome = reader.feed(buffer, at, self._end(buffer, 0), self._emit, is_final=is_final)
        if outcome is Outcome.MORE:
            self._waits = at < len(buffer)
        else:
            self._end_call(reader, is_broken=outcome is Outcome.BROKEN)
            if not reader.is_started:
                self._emit.text("text", reader.held, self._end(buffer, at))
        return at

    def _end_call(self, reader: CallReader, *, is_broken: bool) -> None:
        self._reader = None
        self._state = "after" if reader.is_started else "text"
        if is_broken and reader.is_started:
            self._emit.close(is_complete=reader.is_whole)

    def _after(self, buffer: str, at: int, is_final: bool) -> int:
        if buffer[at].isspace():
            return at + 1
        rest = buffer[at:]
        if rest.startswith(CALLS_END):
            return at + len(CALLS_END)
        if CALLS_END.startswith(rest) and not is_final:
            self._waits = True
            return at
        self._state = "text"
        return at

    def save(self) -> object:
        call = None if self._reader is None else self._reader.save()
        return msgspec.to_builtins(
            Saved(self._state, self._held, self._read, self._emit.is_open, self._is_lone, call)
        )

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, Saved)
        self._state, self._held, self._read = was.state, was.held, was.read
        self._emit.is_open, self._is_lone = was.is_open, was.is_lone
        self._reader = None
        if (was.state == "call") != (was.call is not None):
            raise msgspec.ValidationError("a call is read in the state `call`, and in no other")
        if was.call is not None:
            self._reader = TagCall(SPELLING, self._tools, is_lone=was.is_lone)
            self._reader.restore(was.call)
        self.phase = PHASES[self._state]


def _is_tag(special: str) -> bool:
    """Whether a special token is one of the calls' tags."""
    return special.startswith(("<atem:", "</atem:"))
