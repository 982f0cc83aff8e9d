"""Reads answers of any `Format`: reasoning, then text with calls between. Knows no family.

Reasoning is recognised at the start of the answer only, or where its marker is a special token, or
anywhere for an interleaved format. White space around calls is no text; white space beside a marker
belongs to it as far as the format says. Knows no tokenizer. Argues its length: one machine, whose
steps share all its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from tokenwire.core.events import PartDelta
from tokenwire.core.ports.dialect import Parser, ParserSetup, PartEvent
from tokenwire.core.prompt import Phase, Piece
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.draft import Verdict, judge
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.spacing import MAX_BLANK, Spacing
from tokenwire.plugins.dialects._shared.tables import NOT_QUICK, Head, Tables, quick_test
from tokenwire.plugins.dialects._shared.tagged_state import PHASES, Saved, State
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL

__all__ = ("TaggedParser",)


@final
class TaggedParser(Parser):
    """A step takes the buffer from an index and gives the next one; it sets `_waits` where it needs
    more text to decide, and then the rest of the buffer is held.
    """

    def __init__(self, setup: ParserSetup, tables: Tables) -> None:
        self._choice = setup.choice
        self._tools = setup.tools
        self._tables = tables
        self._format = format = tables.format
        self._reasons = bool(format.think_end) and setup.reasoning
        self._calls = setup.parse_tools and bool(tables.starts)
        self._emit = Emitter(setup.choice)
        self._reader: CallReader | None = None
        self._number = -1  # of the reader's start
        self._state: State = "reasoning" if self._reasons and setup.phase == "reasoning" else "text"
        self._head: Head = "start"
        trims = self._state == "reasoning"
        self._space = Spacing(self._emit, trimmed=format.trims, lead=format.lead, trims=trims)
        self._waits = False
        self._held = ""  # the beginning of a marker, or a draft
        self._prefix = ""  # of a section without a call so far
        self._read = 0  # raw characters that came
        self._later = tables.later[self._calls]
        self._quick = tables.quick[self._calls]
        self._stop, self._other_stop, self._stops, self._tail = NOT_QUICK
        self.phase: Phase = PHASES[self._state]

    def push(self, piece: Piece) -> Sequence[PartEvent]:
        text = piece.text
        if (
            self._stop not in text
            and (not self._other_stop or self._other_stop not in text)
            and (text[-1:] not in self._tail if self._tail else text)
            and not piece.special
        ):
            self._read = end = self._read + len(text)
            return (PartDelta(self._choice, text, end),)
        return self._push(piece)

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        had_call = self._emit.calls > 0
        if self._reader is not None:
            self._break_off(self._reader, self._read, is_last=True)
        elif self._prefix:
            self._give_up_section(self._read)
        blank, self._space.blank, self._prefix = self._space.blank, "", ""
        kind = self._emit.is_open
        if kind == "text" or (not kind and not had_call and self._state != "reasoning"):
            self._emit.text("text", blank, self._space.end)
        self._emit.close()
        return self._settle()

    def _push(self, piece: Piece) -> Sequence[PartEvent]:
        text, format = piece.text, self._format
        if (
            self._stops
            and text[-1:] not in self._tail
            and not piece.special
            and self._stops.isdisjoint(text)
        ):
            self._read += len(text)
            return (PartDelta(self._choice, text, self._read),)
        in_call = self._state in ("call", "draft")
        if piece.special and not self._tables.is_read(text, in_call=in_call):
            if self._state != "draft":
                self._hold(self._held, is_final=True)
            self._read += len(text)
            return self._settle()
        is_reasoning = piece.special and text in (format.think, format.think_end)
        if is_reasoning and self._state in ("text", "section"):
            self._hold(self._held, is_final=True)
            if self._state == "section":
                self._give_up_section(self._read)
            self._read += len(text)
            self._turn(text)
            return self._settle()
        self._read += len(text)
        self._hold(self._held + text)
        return self._settle()

    def _settle(self) -> Sequence[PartEvent]:
        quick = NOT_QUICK
        if self._held or self._space.blank or self._head:
            pass
        elif self._reader is not None:
            if self._reader.plain_until:
                quick = quick_test(self._reader.plain_until, "")
        elif self._state == self._emit.is_open and not self._space.trims:
            quick = self._quick[self._state == "reasoning"]
        self._stop, self._other_stop, self._stops, self._tail = quick
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
                return (self._text if not self._head else self._first)(buffer, at, is_final)
            case "reasoning":
                return self._reasoning(buffer, at, is_final)
            case "draft":
                return self._draft(buffer, at, is_final)
            case "section":
                return self._section(buffer, at, is_final)
            case _:
                return self._call(buffer, at, is_final)

    def _end(self, buffer: str, at: int) -> int:
        """How many raw characters had been read at `at`."""
        return self._read - len(buffer) + at

    def _text(self, buffer: str, at: int, is_final: bool) -> int:
        found, marker = self._later.find(buffer, at, is_final=is_final)
        if found > at:
            self._say(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
            return at
        self._turn(marker)
        return at + len(marker)

    def _first(self, buffer: str, at: int, is_final: bool) -> int:
        """The next visible character, and the white space before it."""
        if buffer[at].isspace():
            first = len(buffer) - len(buffer[at:].lstrip())
            self._say(buffer[at:first], self._end(buffer, first))
            return first
        marker = self._tables.heads[self._head][self._calls].at(buffer, at, is_final=is_final)
        if marker == PARTIAL:
            self._waits = True
        elif marker == NO_MARKER:
            is_between = self._head == "call" and buffer[at] in self._format.between
            self._head = ""
            if is_between and self._calls:
                self._state = "section"
        elif self._tables.numbers.get(marker, -1) >= len(self._format.calls):
            self._begin_call(marker, "")
        else:
            self._turn(marker)
            return at + len(marker)
        return at

    def _turn(self, marker: str) -> None:
        """A marker in text: into a call, a section or reasoning, or one that is dropped."""
        format = self._format
        if marker in self._tables.numbers:
            self._begin_call(marker, marker)
        elif marker in format.dropped:
            if not self._emit.is_open:
                self._space.blank = ""
        elif marker in (format.think, format.think_end):
            self._space.begin()
            if marker == format.think and self._reasons:
                self._emit.close()
                self._state, self._head = "reasoning", ""
        else:
            self._space.trims = True
            if self._head != "call":
                self._state, self._prefix = "section", marker

    def _say(self, text: str, end: int) -> None:
        can_wait = self._emit.is_open != "text" and (self._calls or bool(self._head))
        self._space.say(text, end, can_wait=can_wait, before_calls=self._calls)

    def _reasoning(self, buffer: str, at: int, is_final: bool) -> int:
        if self._head:
            if buffer[at] in self._format.trims:
                return at + 1
            # The prompt has opened the block; a model may open it once more.
            marker = self._tables.again.at(buffer, at, is_final=is_final)
            self._waits = marker == PARTIAL
            if self._waits:
                return at
            self._head = ""
            return at + len(marker)
        found, marker = self._tables.reasoning[self._calls].find(buffer, at, is_final=is_final)
        if found > at:
            self._space.think(buffer[at:found], self._end(buffer, found))
            return found
        if marker == PARTIAL:
            self._waits = True
        elif marker == self._format.think_end:
            self._close_reasoning()
            return at + len(marker)
        elif marker in self._format.dropped:
            if marker in self._format.answers:
                self._close_reasoning()
            return at + len(marker)
        else:
            self._state = "draft"
        return at

    def _close_reasoning(self) -> None:
        self._emit.close()
        self._space.begin()
        self._state, self._head = "text", "thought"

    def _draft(self, buffer: str, at: int, is_final: bool) -> int:
        verdict, stop = judge(buffer[at:], self._tables, self._tools, is_final=is_final)
        if verdict is Verdict.DRAFT:
            self._space.think(buffer[at : at + stop], self._end(buffer, at + stop))
            self._state = "reasoning"
            return at + stop
        if verdict is Verdict.CALL or is_final:
            self._close_reasoning()
        else:
            self._waits = True
        return at

    def _section(self, buffer: str, at: int, is_final: bool) -> int:
        character = buffer[at]
        if character in self._format.between and len(self._prefix) < MAX_BLANK:
            self._prefix += character
            return at + 1
        marker = self._tables.section.at(buffer, at, is_final=is_final)
        if marker == PARTIAL:
            self._waits = True
            return at
        if marker in self._tables.numbers:
            self._begin_call(marker, self._prefix + marker)
            return at + len(marker)
        if marker and len(self._prefix) < MAX_BLANK:
            self._prefix += marker
            return at + len(marker)
        self._give_up_section(self._end(buffer, at))
        return at

    def _give_up_section(self, end: int) -> None:
        """What began a section is text."""
        self._state, self._head, self._space.trims = "text", "", False
        self._say(self._prefix, end)
        self._prefix = ""

    def _begin_call(self, marker: str, held: str) -> None:
        # Why not begin(): the white space before the call is text if no call comes of it.
        self._space.trims, self._prefix = True, ""
        self._number = self._tables.numbers[marker]
        self._reader = self._tables.starts[self._number].reader(self._tools)
        self._reader.held = held
        self._state = "call"

    def _call(self, buffer: str, at: int, is_final: bool) -> int:
        reader, calls = self._reader, self._emit.calls
        assert reader is not None
        at, outcome = reader.feed(buffer, at, self._end(buffer, 0), self._emit, is_final=is_final)
        if self._emit.calls != calls:
            self._head, self._space.blank = "", ""
        if outcome is Outcome.MORE:
            self._waits = at < len(buffer)
        elif outcome is Outcome.DONE:
            self._end_call()
        else:
            self._break_off(reader, self._end(buffer, at))
        return at

    def _end_call(self) -> None:
        self._reader, self._number = None, -1
        self._state, self._head, self._space.trims = "text", "call", True

    def _break_off(self, reader: CallReader, end: int, *, is_last: bool = False) -> None:
        """The call cannot go on: what was announced ends; what was not is text."""
        self._end_call()
        if is_last:
            reader.stop(end, self._emit)
        if reader.is_started:
            self._emit.close(is_complete=reader.is_whole)
        else:
            self._head, self._space.trims = "", False
            self._say(reader.held, end)

    def save(self) -> object:
        call = None if self._reader is None else self._reader.save()
        return msgspec.to_builtins(Saved(
            self._state, self._head, self._held, self._prefix, self._read, self._space.blank,
            self._space.end, self._space.trims, self._emit.is_open, self._emit.calls, self._number,
            call,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, Saved)
        self._state, self._head, self._held, self._read = was.state, was.head, was.held, was.read
        self._prefix, self._emit.is_open, self._emit.calls = was.prefix, was.is_open, was.calls
        self._space.blank, self._space.end = was.blank, was.blank_end
        self._space.trims = was.trims
        self._reader, self._number = None, was.number
        if was.number >= len(self._tables.starts):
            raise msgspec.ValidationError(f"no call of this format has the number {was.number}")
        if was.number >= 0:
            self._reader = self._tables.starts[was.number].reader(self._tools)
            self._reader.restore(was.call)
        self._settle()
