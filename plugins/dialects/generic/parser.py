"""Reads answers as a response template says: regions between anchors. Knows no family.

Inside a region only its own end is looked for; outside, every region's beginning. What stands
outside of all regions belongs to the field that has no opening anchor; where there is none it is
text, but for white space and the frame of turns. A call is announced when its name is certain.
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
from tokenwire.plugins.dialects._shared.tables import NOT_QUICK
from tokenwire.plugins.dialects.generic.search import Found
from tokenwire.plugins.dialects.generic.tables import DROP, OUTSIDE, Tables

__all__ = ("RegionParser",)

MAX_BLANK: Final = 256
Stage: TypeAlias = Literal["body", "call", "closing"]
"""`closing`: behind a call, before its region's end."""


class _State(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    region: int
    stage: Stage
    groups: dict[str, str]
    held: str
    blank: str
    blank_end: int
    trims: bool
    read: int
    is_open: OpenPart
    calls: int
    call: Any


@final
class RegionParser(Parser):
    """A step takes the buffer from an index and gives the next one; it sets `_waits` where it needs
    more text to decide, and then the rest of the buffer is held."""

    def __init__(self, setup: ParserSetup, tables: Tables) -> None:
        self._choice = setup.choice
        self._tools = setup.tools
        self._tables = tables
        self._reasons = setup.reasoning
        self._calls = setup.parse_tools
        self._emit = Emitter(setup.choice)
        self._reader: CallReader | None = None
        self._groups: dict[str, str] = {}
        thought = tables.thought
        starts_thinking = setup.reasoning and setup.phase == "reasoning" and thought != DROP
        self._region = thought if starts_thinking else OUTSIDE
        self._stage: Stage = "body"
        self._blank, self._blank_end = "", 0  # white space that may be at a text's end
        self._trims = tables.strips(self._region)
        self._held = ""
        self._read = 0  # raw characters that came
        self._waits = False
        self._stop, self._other_stop, self._stops, self._tail = NOT_QUICK
        self.phase: Phase = self._phase()

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
        self._read += len(text)
        if piece.special and not self._is_anchor(text):
            self._hold(self._held, is_final=True, behind=len(text))
        else:
            self._hold(self._held + text)
        return self._settle()

    def flush(self) -> Sequence[PartEvent]:
        self._hold(self._held, is_final=True)
        if self._reader is not None:
            self._break_off(self._reader, self._read, is_last=True)
        if self._emit.is_open in ("text", "reasoning") and not self._tables.strips(self._region):
            self._emit.text(self._emit.is_open, self._blank, self._blank_end)
        self._blank, self._held = "", ""
        self._emit.close()
        return self._settle()

    def _is_anchor(self, special: str) -> bool:
        """Whether a special token is, or may be part of, an anchor or a call's text."""
        return self._stage == "call" or any(
            special in text for anchor in self._tables.anchors for text in anchor.literals
        )

    def _phase(self) -> Phase:
        if self._stage != "body":
            return "tool_call"
        is_thought = self._tables.kind(self._region) == "reasoning" and self._reasons
        return "reasoning" if is_thought else "content"

    def _settle(self) -> Sequence[PartEvent]:
        quick = NOT_QUICK
        if self._held or self._blank or (self._trims and self._stage == "body"):
            pass
        elif self._reader is not None:
            stops = self._reader.plain_until
            quick = (stops[0], stops[1:2], frozenset(), "") if 0 < len(stops) < 3 else NOT_QUICK
        elif self._stage == "body" and self._emit.is_open == self._shown():
            quick = self._tables.quick(self._region, calls=self._calls)
        self._stop, self._other_stop, self._stops, self._tail = quick
        self.phase = self._phase()
        return self._emit.take()

    def _shown(self) -> Literal["text", "reasoning"]:
        """What the text of this region is."""
        return "reasoning" if self._phase() == "reasoning" else "text"

    def _hold(self, buffer: str, *, is_final: bool = False, behind: int = 0) -> None:
        """`behind`: characters that were read behind the buffer."""
        at = 0
        self._waits = False
        while at < len(buffer) and not self._waits:
            at = self._step(buffer, at, self._read - behind - len(buffer), is_final)
        self._held = buffer[at:]

    def _step(self, buffer: str, at: int, base: int, is_final: bool) -> int:
        if self._stage == "call":
            return self._call(buffer, at, base, is_final)
        if self._stage == "closing":
            return self._closing(buffer, at, is_final)
        found, region = self._first(buffer, at, is_final)
        limit = len(buffer) if found is None else found.start
        if limit > at:
            self._say(buffer[at:limit], base + limit)
            return limit
        assert found is not None
        if found.is_pending:
            self._waits = True
            return at
        self._turn(region, found, buffer)
        return found.end

    def _first(self, buffer: str, at: int, is_final: bool) -> tuple[Found | None, int]:
        """The first anchor, the longest of those at one place; the first pending one goes before
        what stands behind it."""
        best: Found | None = None
        to = DROP
        for anchor, region in self._tables.watch(self._region, calls=self._calls):
            found = anchor.find(buffer, at, is_final=is_final)
            if found is None or (best is not None and _rank(found) >= _rank(best)):
                continue
            best, to = found, region
        return best, to

    def _turn(self, region: int, found: Found, buffer: str) -> None:
        if region == DROP:
            return
        if self._tables.strips(self._region):
            self._blank = ""
        else:
            self._flush_blank()
        self._region, self._groups = region, dict(found.groups)
        self._trims = self._tables.strips(region)
        if self._shown() != self._emit.is_open:
            self._emit.close()
        if region >= 0 and self._tables.kinds[region] == "call":
            self._reader = self._tables.readers[region](self._groups, self._tools)
            self._reader.held = buffer[found.start : found.end]
            self._stage = "call"

    def _flush_blank(self) -> None:
        blank, self._blank = self._blank, ""
        if self._emit.is_open in ("text", "reasoning"):
            self._emit.text(self._emit.is_open, blank, self._blank_end)

    def _say(self, text: str, end: int) -> None:
        if self._trims:
            text = text.lstrip()
            self._trims = not text
        if not text:
            return
        text = self._blank + text
        kept = len(text.rstrip())
        if len(text) - kept > MAX_BLANK:
            kept = len(text)
        self._blank, self._blank_end = text[kept:], end
        self._emit.text(self._shown(), text[:kept], end - len(self._blank))

    def _call(self, buffer: str, at: int, base: int, is_final: bool) -> int:
        reader = self._reader
        assert reader is not None
        at, outcome = reader.feed(buffer, at, base, self._emit, is_final=is_final)
        if outcome is Outcome.MORE:
            self._waits = at < len(buffer)
        elif outcome is Outcome.DONE:
            self._reader, self._stage = None, "closing"
        else:
            self._break_off(reader, base + at)
        return at

    def _break_off(self, reader: CallReader, end: int, *, is_last: bool = False) -> None:
        """What was announced ends; what was not is text, but for a call that the answer's end cut
        off, of which there is nothing that could be sent."""
        self._reader = None
        if is_last:
            reader.stop(end, self._emit)
        self._stage = "closing" if reader.is_started else "body"
        if reader.is_started:
            self._emit.close(is_complete=reader.is_whole)
        elif not is_last:
            self._region, self._trims = OUTSIDE, False
            self._say(reader.held, end)

    def _closing(self, buffer: str, at: int, is_final: bool) -> int:
        if buffer[at].isspace():
            return at + 1
        close = self._tables.fields[self._region].close
        found = close.find(buffer, at, is_final=is_final) if close is not None else None
        if found is not None and found.start == at and found.is_pending:
            self._waits = True
            return at
        is_close = found is not None and found.start == at
        self._stage, self._region, self._trims = "body", OUTSIDE, self._tables.strips(OUTSIDE)
        return found.end if found is not None and is_close else at

    def save(self) -> object:
        call = None if self._reader is None else self._reader.save()
        return msgspec.to_builtins(_State(
            self._region, self._stage, self._groups, self._held, self._blank, self._blank_end,
            self._trims, self._read, self._emit.is_open, self._emit.calls, call,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _State)
        is_region = OUTSIDE <= was.region < len(self._tables.fields)
        if not is_region or (was.stage != "body" and was.region not in self._tables.readers):
            raise msgspec.ValidationError(f"no region of this template is read as {was.stage}")
        self._region, self._stage, self._groups = was.region, was.stage, was.groups
        self._held, self._blank, self._blank_end = was.held, was.blank, was.blank_end
        self._trims, self._read = was.trims, was.read
        self._emit.is_open, self._emit.calls = was.is_open, was.calls
        self._reader = None
        if was.stage == "call":
            groups = dict.fromkeys(self._tables.names(was.region), "") | was.groups
            self._reader = self._tables.readers[was.region](groups, self._tools)
            self._reader.restore(was.call)
        self._settle()


def _rank(found: Found) -> tuple[int, bool, int]:
    """The earlier first, then one that is pending, then the longer."""
    return found.start, not found.is_pending, -found.end
