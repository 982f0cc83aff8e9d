"""Reads calls in which the tool's name is the key of its arguments: `[{"NAME": {...}}, ...]`.

Knows no parser. A call is announced where its arguments begin; these go out as they were
written, while they come, and end where their JSON does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody, BodyState
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.json_stream import CursorState, JsonCursor
from tokenwire.plugins.dialects._shared.tags import PARTIAL, Tags

__all__ = ("KeyedCallReader", "keyed_calls")

Place: TypeAlias = Literal["open", "key", "colon", "value", "arguments", "after"]
"""`open`: before an object; `value`: behind a key's colon; `after`: behind a call's arguments."""
BLANK: Final = " \t\r\n"
BETWEEN: Final = " \t\r\n,]}"
MAX_HEADER: Final = 256


class _Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    held: str
    key: str
    cursor: CursorState
    body: BodyState | None


def keyed_calls(end: str) -> Callable[[tuple[ToolSpec, ...]], CallReader]:
    """For a `CallStart`. `end`: the marker behind the calls."""
    ends = Tags((end,))

    def make(tools: tuple[ToolSpec, ...]) -> CallReader:
        return KeyedCallReader(ends)

    return make


@final
class KeyedCallReader(CallReader):
    kind: ClassVar[str] = "keyed"
    __slots__ = ("_body", "_cursor", "_ends", "_key", "_place", "held")

    def __init__(self, ends: Tags) -> None:
        self._ends = ends
        self._place: Place = "open"
        self._key = ""  # as it is written
        self._cursor = JsonCursor()
        self._body: ArgumentBody | None = None
        self.held = ""

    @property
    def is_started(self) -> bool:  # type: ignore[override]
        return self._place in ("arguments", "after")

    @property
    def is_whole(self) -> bool:  # type: ignore[override]
        return self._place == "after"

    @property
    def plain_until(self) -> str:
        return '"\\' if self._body is not None and self._body.is_in_string else ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        while at < len(text):
            match self._place:
                case "arguments":
                    at, outcome = self._arguments(text, at, base, emit)
                case "after":
                    at, outcome = self._after(text, at, is_final=is_final)
                case _:
                    at, outcome = self._header(text, at, emit)
            if outcome is not None:
                return at, outcome
        return at, Outcome.MORE

    def _header(self, text: str, at: int, emit: Emitter) -> tuple[int, Outcome | None]:
        """One step; what was read is held until the name is certain."""
        if len(self.held) >= MAX_HEADER:
            return at, Outcome.BROKEN
        if self._place == "key":
            # Why cut: where a header is too long must not depend on how the text was cut.
            end = self._cursor.feed(text[: at + MAX_HEADER - len(self.held)], at)
            self._key += text[at:end]
            self.held += text[at:end]
            if self._cursor.is_over:
                self._place = "colon"
            return end, None
        character = text[at]
        if self._place == "open" and character == '"':
            self._place, self._key, self._cursor = "key", "", JsonCursor()
            return at, None
        if self._place == "value" and character == "{":
            return at, self._begin(emit)
        is_colon = self._place == "colon" and character == ":"
        if not (character in BLANK or is_colon or (self._place == "open" and character in "[{")):
            return at, Outcome.BROKEN
        self._place = "value" if is_colon else self._place
        self.held += character
        return at + 1, None

    def _begin(self, emit: Emitter) -> Outcome | None:
        name = _decode(self._key)
        if not name:
            return Outcome.BROKEN
        emit.start_call(name)
        self._body, self._place = ArgumentBody(), "arguments"
        self.held = self._key = ""
        return None

    def _arguments(
        self, text: str, at: int, base: int, emit: Emitter
    ) -> tuple[int, Outcome | None]:
        body = self._body
        assert body is not None
        at = body.feed(text, at, base, emit)
        if body.mode == "over":
            body.close(base + at, emit, is_marked=True)
            self._body, self._place = None, "after"
            return at, None
        return at, Outcome.BROKEN if at < len(text) else None

    def _after(self, text: str, at: int, *, is_final: bool) -> tuple[int, Outcome | None]:
        if text[at] in BETWEEN:
            return at + 1, None
        if text[at] in '{"':
            self._place = "open"
            return at, None
        marker = self._ends.at(text, at, is_final=is_final)
        if marker == PARTIAL:
            return at, Outcome.MORE
        return at + len(marker), Outcome.DONE

    def save(self) -> object:
        body = None if self._body is None else self._body.save()
        return msgspec.to_builtins(
            _Saved(self._place, self.held, self._key, self._cursor.save(), body)
        )

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _Saved)
        if (was.place == "arguments") != (was.body is not None):
            raise msgspec.ValidationError("arguments are read in the place `arguments`")
        self._place, self.held, self._key = was.place, was.held, was.key
        self._cursor.restore(was.cursor)
        self._body = None if was.body is None else ArgumentBody.restored(was.body)


def _decode(literal: str) -> str:
    """Of a JSON string; "" for what is none, or what no UTF-8 can say."""
    try:
        name = str(json.loads(literal))
        name.encode()
    except ValueError:
        return ""
    return name
