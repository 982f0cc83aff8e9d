"""Reads Functionary v3.2 answers: messages behind lines `>>>RECIPIENT`, to `all` or to a tool.

The prompt ends with `>>>`. A call's arguments are JSON and end where it does; text that is no JSON
(code, for a tool that takes it) goes up to the next such line. A line that names nobody is text.
Knows no tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody, BodyState
from tokenwire.plugins.dialects._shared.emitter import Emitter, OpenPart
from tokenwire.plugins.dialects.functionary.recipients import ALL, Recipients

__all__ = ("MessagesParser",)

State: TypeAlias = Literal["first", "text", "call", "after"]
"""`first`: at the head of the answer; `after`: behind a call's arguments."""
PHASES: Final[dict[State, Phase]] = {
    "first": "content", "text": "content", "call": "tool_call", "after": "tool_call"
}  # fmt: skip


class _Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    state: State
    held: str
    read: int
    is_open: OpenPart
    body: BodyState | None

    def __post_init__(self) -> None:
        if (self.state == "call") != (self.body is not None):
            raise ValueError("arguments are read in the state `call`, and in no other")


@final
class MessagesParser(Parser):
    """A step takes the buffer from an index and gives the next one, or -1 where it needs more."""

    def __init__(self, setup: ParserSetup) -> None:
        self._choice = setup.choice
        names = [tool.name for tool in setup.tools]
        # Why None: a parser that is told of no tools cannot tell which names are theirs.
        any_name = setup.parse_tools and not names
        self._recipients = Recipients(None if any_name else names if setup.parse_tools else ())
        self._emit = Emitter(setup.choice)
        self._state: State = "first"
        self._body: ArgumentBody | None = None
        self._held = ""  # what may be the beginning of a line with a recipient
        self._read = 0  # raw characters that came
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if piece.special:
            self._hold(self._held, is_final=True)
            self._read += len(text)
            return self._settle()
        self._read += len(text)
        if not self._held and text and self._is_plain(text):
            return (PartDelta(self._choice, text, self._read),)
        self._hold(self._held + text)
        return self._settle()

    def _is_plain(self, text: str) -> bool:
        """Whether it goes out as it stands, as more of the open part."""
        if self._body is not None:
            return self._body.is_in_string and '"' not in text and "\\" not in text
        return self._state == self._emit.is_open and ">" not in text

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        self._end_message(self._read, is_marked=False)
        self._state = "text"
        return self._settle()

    def _settle(self) -> Sequence[PartEvent]:
        self.phase = PHASES[self._state]
        return self._emit.take()

    def _hold(self, buffer: str, *, is_final: bool = False) -> None:
        at = 0
        while at < len(buffer):
            match self._state:
                case "first":
                    step = self._first(buffer, is_final)
                case "call":
                    step = self._call(buffer, at, is_final)
                case "after" if buffer[at].isspace():
                    step = at + 1
                case _:
                    step = self._text(buffer, at, is_final)
            if step < 0:
                break
            at = step
        self._held = buffer[at:]

    def _end(self, buffer: str, at: int) -> int:
        """How many raw characters had been read at `at`."""
        return self._read - len(buffer) + at

    def _first(self, buffer: str, is_final: bool) -> int:
        behind, name = self._recipients.first(buffer, is_final=is_final)
        if name:
            self._begin_message(name)
        elif behind == 0:
            self._state = "text"
        return behind

    def _text(self, buffer: str, at: int, is_final: bool) -> int:
        found, behind, name = self._recipients.find(buffer, at, is_final=is_final)
        if found > at:
            self._state = "text"
            self._emit.text("text", buffer[at:found], self._end(buffer, found))
            return found
        return self._turn(buffer, behind, name)

    def _turn(self, buffer: str, behind: int, name: str) -> int:
        """Another message begins; or not yet."""
        if not name:
            return -1
        self._end_message(self._end(buffer, behind), is_marked=True)
        self._begin_message(name)
        return behind

    def _begin_message(self, name: str) -> None:
        if name == ALL:
            self._state = "text"
        else:
            self._emit.start_call(name)
            self._body, self._state = ArgumentBody(), "call"

    def _end_message(self, end: int, *, is_marked: bool) -> None:
        if self._body is not None:
            self._body.close(end, self._emit, is_marked=is_marked)
            self._body = None
        self._emit.close()

    def _call(self, buffer: str, at: int, is_final: bool) -> int:
        body = self._body
        assert body is not None
        stop = len(buffer)
        if body.mode in ("before", "raw"):
            stop, behind, name = self._recipients.find(buffer, at, is_final=is_final)
            if stop == at:
                return self._turn(buffer, behind, name)
        base = self._end(buffer, 0)
        at = body.feed(buffer if stop == len(buffer) else buffer[:stop], at, base, self._emit)
        if body.mode == "over":
            self._end_message(base + at, is_marked=True)
            self._state = "after"
        elif at < stop:
            at = body.skip(at, base, self._emit)
        return at

    def save(self) -> object:
        body = None if self._body is None else self._body.save()
        return msgspec.to_builtins(
            _Saved(self._state, self._held, self._read, self._emit.is_open, body)
        )

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _Saved)
        self._state, self._held, self._read = was.state, was.held, was.read
        self._emit.is_open = was.is_open
        self._body = None if was.body is None else ArgumentBody.restored(was.body)
        self.phase = PHASES[self._state]
