"""Reads a call whose header names it before its JSON arguments, `name[ARGS]{...}`. Knows no names.

What stands before the arguments is a header that a family's function takes apart; the arguments go
out as they were written, while they come, and the call ends where their JSON does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.json_stream import CursorState, JsonCursor

__all__ = ("HeadedCall", "Header", "HeaderShape")

MAX_HEADER: Final = 256
"""Characters before the arguments."""
Place: TypeAlias = Literal["header", "arguments"]


class Header(Struct, frozen=True):
    name: str
    id: str | None = None


SplitHeader: TypeAlias = Callable[[str], Header | None]
"""The header's text, up to the arguments, to its parts; None where it is no header."""


class HeaderShape(Struct, frozen=True):
    """How a family writes headers. `begins` matches every beginning of one, so that other text is
    told from it as soon as it differs."""

    begins: re.Pattern[str]
    split: SplitHeader


class _State(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    header: str
    held: str
    cursor: CursorState
    is_started: bool
    is_whole: bool


@final
class HeadedCall(CallReader):
    """See HeaderShape."""

    kind = "headed"

    def __init__(self, tools: tuple[ToolSpec, ...], shape: HeaderShape) -> None:
        self._shape = shape
        self._place: Place = "header"
        self._header = ""
        self._cursor = JsonCursor()
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        cursor = self._cursor
        is_plain = self.is_started and cursor.in_string and not cursor.is_escaped
        return '"\\' if is_plain else ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        if self._place == "header":
            at, outcome = self._in_header(text, at, emit)
            if outcome is not Outcome.MORE or self._place == "header":
                return at, outcome
        end = self._cursor.feed(text, at)
        emit.arguments(text[at:end], base + end)
        if self._cursor.is_over:
            self.is_whole = True
            emit.close()
            return end, Outcome.DONE
        # Why: outside strings no JSON has the character at which the cursor stopped.
        return end, Outcome.BROKEN if end < len(text) else Outcome.MORE

    def _in_header(self, text: str, at: int, emit: Emitter) -> tuple[int, Outcome]:
        # Why one by one: where a header ends to be one must not depend on how the text was cut.
        while at < len(text) and text[at] != "{":
            header = self._header + text[at]
            if len(header) > MAX_HEADER or not self._shape.begins.fullmatch(header):
                return at, Outcome.BROKEN
            self._header = header
            self.held += text[at]
            at += 1
        if at == len(text):
            return at, Outcome.MORE
        parts = self._shape.split(self._header)
        if parts is None:
            return at, Outcome.BROKEN
        emit.start_call(parts.name, parts.id)
        self._place, self._header = "arguments", ""
        self.is_started, self.held = True, ""
        return at, Outcome.MORE

    def save(self) -> object:
        return msgspec.to_builtins(_State(
            self._place, self._header, self.held, self._cursor.save(), self.is_started,
            self.is_whole,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _State)
        self._place, self._header, self.held = was.place, was.header, was.held
        self.is_started, self.is_whole = was.is_started, was.is_whole
        self._cursor.restore(was.cursor)
