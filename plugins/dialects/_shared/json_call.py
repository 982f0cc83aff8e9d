"""Reads tool calls that are JSON objects, `{"name": ..., "arguments": ...}`, alone or in a list.

A call is announced when its name is certain; its arguments go out as they were written, while they
come. Where the name stands behind the arguments, these wait for it. The call ends where its JSON
does. A null for the arguments, or none, is `{}`; but where none came and an object or a list stood
under a key without meaning, the call is incomplete: nobody knows its arguments. What several calls
behind one marker have between them (commas, brackets, a brace too many) is skipped, and so is the
end marker.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, final

import msgspec

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import MAX_HELD, CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.format import ReaderMaker
from tokenwire.plugins.dialects._shared.json_saved import Place, Saved, Wrote
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.json_stream import JsonCursor, string_text
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL, Tags

__all__ = ("JsonCallReader", "json_calls")

BLANK: Final = " \t\r\n"
MAX_WAITING: Final = 65_536
"""Characters held where the arguments stand before the name."""
MAX_KEY: Final = 256
"""Characters of a key of an announced call that are kept, and again of the piece they end in."""
NULL: Final = "null"


def json_calls(shape: JsonShape) -> ReaderMaker:
    """For a `CallStart`."""
    marks = Tags([mark for mark in (shape.begin, shape.end) if mark])

    def make(tools: tuple[ToolSpec, ...]) -> CallReader:
        return JsonCallReader(shape, marks, tools)

    return make


@final
class JsonCallReader(CallReader):
    """`held` is what was read and not given out: the header, until the name is certain."""

    kind: ClassVar[str] = "json"
    __slots__ = (
        "_call_id", "_cursor", "_depth", "_has_other", "_key", "_marks", "_place", "_shape",
        "_tools", "_waiting", "_word", "_wrote", "held", "is_started", "is_whole",
    )  # fmt: skip

    def __init__(self, shape: JsonShape, marks: Tags, tools: tuple[ToolSpec, ...]) -> None:
        self._shape = shape
        self._marks = marks
        self._tools = tools
        self.held = ""
        self._renew()

    def _renew(self) -> None:
        """For the next call."""
        self._place: Place = "open"
        self._key = ""
        self._word = ""
        self._waiting = ""
        self._call_id: str | None = None
        self._depth = 0
        self._cursor = JsonCursor()
        self._wrote: Wrote = ""
        self._has_other = False
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        is_plain = (
            self._place == "arguments"
            and self._wrote == "part"
            and self._cursor.in_string
            and not self._cursor.is_escaped
        )
        return '"\\' if is_plain else ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        while at < len(text):
            if self._place == "after":
                at, outcome = self._after(text, at, is_final=is_final)
            else:
                at, outcome = self._call(text, at, base, emit, is_final=is_final)
            if outcome is not None:
                return at, outcome
        return at, Outcome.MORE

    def _after(self, text: str, at: int, *, is_final: bool) -> tuple[int, Outcome | None]:
        if text[at] in self._shape.between:
            return at + 1, None
        if text[at] == "{":
            self.held = ""
            self._renew()
            return at, None
        marker = self._marks.at(text, at, is_final=is_final)
        if marker == PARTIAL:
            return at, Outcome.MORE
        return at + len(marker) * (marker == self._shape.end), Outcome.DONE

    def _call(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome | None]:
        """One call, from wherever the last feed stopped."""
        begin = at
        outcome: Outcome | None = None
        while at < len(text) and outcome is None and self._place != "after":
            # Why a limit: where a header is too long must not depend on how the text was cut.
            limit = len(text) if self.is_started else at + self._room(at - begin)
            if limit <= at:
                outcome = Outcome.BROKEN
                break
            is_inside = self._place not in ("open", "member", "colon", "value")
            if is_inside:
                head = text if len(text) <= limit else text[:limit]
                at, is_angle, outcome = self._inside(head, at, base, emit)
            else:
                is_angle = text[at] == "<"
                if not is_angle:
                    at, outcome = self._between(text, at, base, emit)
            if is_angle and outcome is None:
                at, outcome = self._angle(text, at, base, emit, is_final=is_final)
        if not self.is_started and self._place != "after":
            self.held += text[begin:at]
        return at, outcome

    def _room(self, read: int) -> int:
        """How many more characters a call without a name may have, `read` behind what is held."""
        held = len(self.held) + read
        if self._place == "arguments":
            return MAX_WAITING - held
        return MAX_HELD - (held - len(self._waiting))

    def _angle(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome | None]:
        """A `<` outside strings: a marker, part of a value that is no JSON, or the end."""
        marker = self._marks.at(text, at, is_final=is_final)
        if marker == PARTIAL:
            return at, Outcome.MORE
        if marker == NO_MARKER and self._place in ("name", "id", "key", "arguments", "other"):
            self._collect("<", base + at + 1, emit)
            return at + 1, None
        if marker and marker == self._shape.begin and self._place == "open":
            return at + len(marker), None
        return at, Outcome.BROKEN

    def _between(self, text: str, at: int, base: int, emit: Emitter) -> tuple[int, Outcome | None]:
        character = text[at]
        if character in BLANK:
            return at + 1, None
        if self._place == "open" and character in "[{":
            self._place = "member" if character == "{" else "open"
        elif self._place == "colon" and character == ":":
            self._place = "value"
        elif self._place == "member" and character in '",}':
            if character == '"':
                self._begin("key")
                return at, None
            if character == "}" and not self._depth:
                return self._finish(at + 1, base, emit)
            self._depth -= character == "}"
        elif self._place == "value" and character not in ",:}]":
            return self._begin_value(character, at)
        else:
            return at, Outcome.BROKEN
        return at + 1, None

    def _begin(self, place: Place) -> None:
        self._place = place
        self._word = ""
        self._cursor = JsonCursor()

    def _begin_value(self, character: str, at: int) -> tuple[int, Outcome | None]:
        shape, key = self._shape, self._key
        if key in shape.names and not self.is_started:
            if character != '"':
                return at, Outcome.BROKEN
            self._begin("name")
        elif key in shape.arguments and not self._wrote and not self._waiting:
            self._begin("arguments")
        elif key in shape.wraps and character == "{":
            self._place, self._depth = "member", self._depth + 1
            return at + 1, None
        elif key in shape.ids and character == '"':
            self._begin("id")
        else:
            self._has_other = self._has_other or character in "{["
            self._begin("other")
        return at, None

    def _inside(
        self, text: str, at: int, base: int, emit: Emitter
    ) -> tuple[int, bool, Outcome | None]:
        """The next index, and whether an angle stands there that the cursor stopped at."""
        end = self._cursor.feed(text, at)
        self._collect(text[at:end], base + end, emit)
        if self._cursor.is_over:
            return end, False, self._end_value(base + end, emit)
        return end, end < len(text), None

    def _collect(self, text: str, end: int, emit: Emitter) -> None:
        if self._place == "other":
            return
        if self._place != "arguments":
            # Why a limit: once the call is announced, none bounds its keys, and no known one is
            # so long.
            if not self.is_started or len(self._word) < MAX_KEY:
                self._word += text[:MAX_KEY] if self.is_started else text
        elif not self.is_started:
            self._waiting += text
        else:
            self._word += text
            if not NULL.startswith(self._word):
                emit.arguments(self._word if self._wrote == "" else text, end)
                self._wrote = "part"
                self._word = "!"  # Why: what begins so is no null any more.

    def _end_value(self, end: int, emit: Emitter) -> Outcome | None:
        place, shape = self._place, self._shape
        self._place = "member"
        if place == "key":
            self._key = string_text(self._word) or self._word[1:-1]
            self._place = "colon"
            known = (*shape.names, *shape.arguments, *shape.ids, *shape.wraps, *shape.extra)
            if shape.is_strict and not self.is_started and self._key not in known:
                return Outcome.BROKEN
        elif place == "name":
            return self._start(string_text(self._word), end, emit)
        elif place == "id":
            self._call_id = string_text(self._word) or None
        elif place == "arguments" and self.is_started:
            if self._wrote == "":
                self._write_all(self._word, end, emit)
            self._wrote, self.is_whole = "all", True
        return None

    def _start(self, name: str, end: int, emit: Emitter) -> Outcome | None:
        is_known = not self._shape.is_strict or any(tool.name == name for tool in self._tools)
        if not name or not is_known:
            return Outcome.BROKEN
        emit.start_call(name, self._call_id)
        self.is_started = True
        self.held = ""
        if self._waiting:
            self._write_all(self._waiting, end, emit)
        return None

    def _write_all(self, arguments: str, end: int, emit: Emitter) -> None:
        emit.arguments("{}" if arguments == NULL else arguments, end)
        self._wrote, self.is_whole = "all", True

    def _finish(self, at: int, base: int, emit: Emitter) -> tuple[int, Outcome | None]:
        if not self.is_started:
            return at, Outcome.BROKEN
        # Why incomplete: what may be the arguments stands under a name that nobody knows.
        is_lost = self._wrote == "" and self._has_other
        if self._wrote == "" and not is_lost:
            emit.arguments("{}", base + at)
        emit.close(is_complete=not is_lost)
        self._renew()
        self._place = "after"
        return at, None

    def save(self) -> object:
        return msgspec.to_builtins(Saved(
            self._place, self._key, self._word, self._waiting, self._call_id, self._depth,
            self._cursor.save(), self.held, self.is_started, self._wrote, self._has_other,
        ))  # fmt: skip

    def restore(self, state: Any) -> None:
        was = msgspec.convert(state, Saved)
        self._place, self._key, self._word = was.place, was.key, was.word
        self._waiting, self._wrote, self._call_id = was.waiting, was.wrote, was.call_id
        self._depth, self.held, self.is_started = was.depth, was.held, was.is_started
        self.is_whole = was.wrote == "all"
        self._has_other = was.has_other
        self._cursor.restore(was.cursor)
