"""Reads one JSON tool call, `{"name": ..., "arguments": ...}`, from its `{` on. Knows no markers.

The call is announced when its name is certain; its arguments go out as they were written, while
they come. Where the name stands behind the arguments, these wait for it. The call ends where its
JSON does. A null for the arguments, or none, is `{}`.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Final, final

from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.json_stream import JsonCursor
from tokenwire.plugins.dialects.hermes.state import CallState, Place, Wrote

__all__ = ("CallReader", "Outcome")

NAMES: Final = ("name",)
ARGUMENTS: Final = ("arguments", "parameters")
BLANK: Final = " \t\r\n"
MAX_HEADER: Final = 65_536
"""Characters held while the name is not known."""
NULL: Final = "null"
LONE: Final = re.compile(r"[\ud800-\udfff]")
"""A surrogate in a string that Python has decoded: pairs are one character there."""


class Outcome(Enum):
    """Where a feed stopped: more text is needed; at a `<` outside strings; behind the call; at a
    character that no call has there."""

    MORE = "more"
    ANGLE = "angle"
    DONE = "done"
    BROKEN = "broken"


@final
class CallReader:
    """`held` is what was read and not given out: the header, until the name is certain."""

    __slots__ = ("_cursor", "_key", "_place", "_waiting", "_word", "_wrote", "held", "is_started")

    def __init__(self, held: str) -> None:
        """`held`: the marker before the call, which is text again if no call comes of it."""
        self._place: Place = "open"
        self._key = ""
        self._word = ""
        self._waiting = ""
        self._cursor = JsonCursor()
        self._wrote: Wrote = ""
        self.held = held
        self.is_started = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments have been written to their end."""
        return self._wrote == "all"

    @property
    def is_empty(self) -> bool:
        """Whether nothing but white space has come."""
        return self._place == "open"

    @property
    def is_in_argument_string(self) -> bool:
        """Whether text up to the next quote or backslash goes out as it comes."""
        return (
            self._place == "arguments"
            and self._wrote == "part"
            and self._cursor.in_string
            and not self._cursor.is_escaped
        )

    def feed(self, text: str, at: int, base: int, emit: Emitter) -> tuple[int, Outcome]:
        """Read `text` from `at`; `base` is how many raw characters stand before `text`."""
        start = at
        outcome = Outcome.MORE
        room = MAX_HEADER - len(self.held)
        if not self.is_started and len(text) - at > room:
            # Why cut: where a header is too long must not depend on how the text was cut.
            text = text[: at + room]
        while at < len(text) and outcome is Outcome.MORE:
            if self._place in ("open", "member", "colon", "value"):
                at, outcome = self._between(text, at, base, emit)
            else:
                at, outcome = self._inside(text, at, base, emit)
        if not self.is_started:
            self.held += text[start:at]
            if len(self.held) >= MAX_HEADER:
                return at, Outcome.BROKEN
        return at, outcome

    def skip_angle(self, at: int, base: int, emit: Emitter) -> tuple[int, Outcome]:
        """The `<` at `at` begins no marker: it belongs to the value, or breaks the header."""
        if self._place in ("open", "member", "colon", "value"):
            return at, Outcome.BROKEN
        self._collect("<", base + at + 1, emit)
        if not self.is_started:
            self.held += "<"
        return at + 1, Outcome.MORE

    def _between(self, text: str, at: int, base: int, emit: Emitter) -> tuple[int, Outcome]:
        character = text[at]
        if character in BLANK:
            return at + 1, Outcome.MORE
        if character == "<":
            return at, Outcome.ANGLE
        if self._place == "open" and character in "[{":
            self._place = "member" if character == "{" else "open"
        elif self._place == "colon" and character == ":":
            self._place = "value"
        elif self._place == "member" and character in '",}':
            if character == '"':
                self._begin("key")
                return at, Outcome.MORE
            if character == "}":
                return self._finish(at + 1, base, emit)
        elif self._place == "value" and character not in ",:}]":
            return self._begin_value(character, at)
        else:
            return at, Outcome.BROKEN
        return at + 1, Outcome.MORE

    def _begin(self, place: Place) -> None:
        self._place = place
        self._word = ""
        self._cursor = JsonCursor()

    def _begin_value(self, character: str, at: int) -> tuple[int, Outcome]:
        if self._key in NAMES and not self.is_started:
            if character != '"':
                return at, Outcome.BROKEN
            self._begin("name")
        elif self._key in ARGUMENTS and not self._wrote and not self._waiting:
            self._begin("arguments")
        else:
            self._begin("other")
        return at, Outcome.MORE

    def _inside(self, text: str, at: int, base: int, emit: Emitter) -> tuple[int, Outcome]:
        end = self._cursor.feed(text, at)
        self._collect(text[at:end], base + end, emit)
        if self._cursor.is_over:
            return end, self._end_value(base + end, emit)
        return end, Outcome.ANGLE if end < len(text) else Outcome.MORE

    def _collect(self, text: str, end: int, emit: Emitter) -> None:
        if self._place == "other":
            return
        if self._place != "arguments":
            self._word += text
        elif not self.is_started:
            self._waiting += text
        else:
            self._word += text
            if not NULL.startswith(self._word):
                emit.arguments(self._word if self._wrote == "" else text, end)
                self._wrote = "part"
                self._word = "!"  # Why: what begins so is no null any more.

    def _end_value(self, end: int, emit: Emitter) -> Outcome:
        place = self._place
        self._place = "member"
        if place == "key":
            self._key = _decode(self._word) or self._word[1:-1]
            self._place = "colon"
        elif place == "name":
            name = _decode(self._word)
            if not name:
                return Outcome.BROKEN
            emit.start_call(name)
            self.is_started = True
            self.held = ""
            if self._waiting:
                self._write_all(self._waiting, end, emit)
        elif place == "arguments" and self.is_started:
            if self._wrote == "":
                self._write_all(self._word, end, emit)
            self._wrote = "all"
        return Outcome.MORE

    def _write_all(self, arguments: str, end: int, emit: Emitter) -> None:
        emit.arguments("{}" if arguments == NULL else arguments, end)
        self._wrote = "all"

    def _finish(self, at: int, base: int, emit: Emitter) -> tuple[int, Outcome]:
        if not self.is_started:
            return at, Outcome.BROKEN
        if self._wrote == "":
            emit.arguments("{}", base + at)
        emit.close()
        return at, Outcome.DONE

    def save(self) -> CallState:
        return CallState(
            self._place, self._key, self._word, self._waiting, self._cursor.save(), self.held,
            self.is_started, self._wrote,
        )  # fmt: skip

    @classmethod
    def restored(cls, state: CallState) -> CallReader:
        reader = cls(state.held)
        reader._place, reader._key, reader._word = state.place, state.key, state.word
        reader._waiting, reader._wrote = state.waiting, state.wrote
        reader.is_started = state.is_started
        reader._cursor.restore(state.cursor)
        return reader


def _decode(literal: str) -> str:
    """The text of a JSON string; as it stands between its quotes where it is not quite JSON; "" for
    what no UTF-8 can say (a lone surrogate)."""
    try:
        text = str(json.loads(literal))
    except ValueError:
        text = literal[1:-1]
    return text if LONE.search(text) is None else ""
