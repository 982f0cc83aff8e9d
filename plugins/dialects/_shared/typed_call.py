"""Reads one call whose parameters say their own type, by its `TypedSpelling`. Knows no family.

A parameter said to be text is streamed as a JSON string; any other is passed on as it was written
where that is JSON of no string, else as a JSON string. One that says no type is read by the tool's
schema. A parameter that is written twice stands twice, as the model said it. A value's closing tag
ends it only where the next parameter or the call's end stands behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.json_stream import CursorState, JsonCursor
from tokenwire.plugins.dialects._shared.schema import ANY, Kinds, Schema
from tokenwire.plugins.dialects._shared.tag_spelling import NO, PARTIAL, begins, skip_blank
from tokenwire.plugins.dialects._shared.typed_value import (
    ESCAPED,
    TypedValue,
    ValueState,
    quoted,
)

__all__ = ("TypedCall", "TypedSpelling")

Place: TypeAlias = Literal["head", "between", "value", "json", "closing"]
Typing: TypeAlias = Literal["string", "other", "schema"]
Step: TypeAlias = tuple[int, Outcome | None]
"""None: go on."""

MAX_TAG: Final = 512
"""Characters of an opening tag."""
TEXT: Final[Kinds] = frozenset(("string",))
OTHER: Final[Kinds] = ANY - TEXT


class TypedSpelling(Struct, frozen=True):
    """A call is its marker, `head`, then parameters, then `end`; a parameter is `param`,
    `attributes`, the value, `value_end`. White space may stand between tags. The two patterns match
    the least that they can, so that what they match does not depend on how the text was cut."""

    head: re.Pattern[str]
    """The rest of the call's opening tag; group 1 is the tool's name."""
    param: str
    attributes: re.Pattern[str]
    """The rest of a parameter's opening tag; group 1 is the key, group 2 its type, if it says
    one."""
    value_end: str
    end: str
    text_type: str = "string"
    """Group 2 of a text."""
    escapes: Mapping[str, str] = {}
    """In names: entities to what they stand for."""
    whole: tuple[str, str] = ("", "")
    """Around arguments that are given as one JSON text instead of parameters."""


class TypedCallState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    name: str
    key: str
    typing: Typing
    count: int
    held: str
    value: ValueState
    cursor: CursorState


@final
class TypedCall(CallReader):
    """For a `CallStart` whose marker is the call's opening tag up to its attributes."""

    kind: ClassVar[str] = "typed"

    __slots__ = (
        "_count", "_cursor", "_key", "_name", "_place", "_spelling", "_tools", "_typing", "_value",
        "held", "is_started", "is_whole",
    )  # fmt: skip

    def __init__(self, spelling: TypedSpelling, tools: tuple[ToolSpec, ...]) -> None:
        self._spelling = spelling
        self._tools = tools
        self._place: Place = "head"
        self._name = ""
        self._key = ""
        self._typing: Typing = "string"
        self._count = 0
        self._value = TypedValue(TEXT)
        self._cursor = JsonCursor()
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        if self._place == "value" and self._value.is_string:
            return ESCAPED + "<"
        cursor = self._cursor
        if self._place == "json" and cursor.in_string and not cursor.is_escaped:
            return '"\\'
        return ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        outcome: Outcome | None = None
        while outcome is None:
            match self._place:
                case "head":
                    at, outcome = self._head(text, at, emit, is_final)
                case "between":
                    at, outcome = self._between(text, at, base, emit, is_final)
                case "value":
                    at, outcome = self._in_value(text, at, base, emit, is_final)
                case "json":
                    at, outcome = self._in_json(text, at, base, emit)
                case "closing":
                    at, outcome = self._closing(text, at, emit, is_final)
        return at, outcome

    def stop(self, end: int, emit: Emitter) -> None:
        if self._place == "value":
            emit.arguments(self._value.stop(), end)

    def _head(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        found = self._spelling.head.match(text, at, at + MAX_TAG)
        if found is None:
            return self._wait(text, at, is_final)
        self._name = self._plain(found.group(1))
        self._place, self.held, self.is_started = "between", "", True
        emit.start_call(self._name)
        return found.end(), None

    def _plain(self, name: str) -> str:
        for entity, character in self._spelling.escapes.items():
            name = name.replace(entity, character)
        return name

    def _wait(self, text: str, at: int, is_final: bool) -> tuple[int, Outcome]:
        """For more of a tag. At the answer's end there is no more: it was cut off."""
        if len(text) - at >= MAX_TAG:
            return at, Outcome.BROKEN
        if is_final and not self.is_started:
            self.held += text[at:]
        return (len(text) if is_final else at), Outcome.MORE

    def _between(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return at, Outcome.MORE
        spelling = self._spelling
        wholes = spelling.whole[:1] if not self._count else ()
        start = begins(text, at, (spelling.param, *wholes), is_final=is_final)
        if start >= 0:
            if text.startswith(spelling.param, at):
                found = spelling.attributes.match(text, start, at + MAX_TAG)
                if found is None:
                    return self._wait(text, at, is_final)
                self._begin_value(self._plain(found.group(1)), found.group(2))
                before = ", " if self._count > 1 else "{"
                emit.arguments(f"{before}{quoted(self._key)}: ", base + found.end())
                return found.end(), None
            self._place = "json"
            return start, None
        end = begins(text, at, (spelling.end,), is_final=is_final)
        if end >= 0:
            emit.arguments("}" if self._count else "{}", base + end)
            return self._finish(end, emit)
        if PARTIAL in (start, end):
            return self._wait(text, at, is_final)
        return at, Outcome.BROKEN

    def _finish(self, end: int, emit: Emitter) -> Step:
        self.is_whole = True
        emit.close()
        return end, Outcome.DONE

    def _begin_value(self, key: str, type: str | None) -> None:
        self._key = key
        self._count += 1
        self._place = "value"
        if type is None:
            self._typing = "schema"
        else:
            self._typing = "string" if type == self._spelling.text_type else "other"
        self._value = self._new_value()

    def _new_value(self) -> TypedValue:
        if self._typing == "schema":
            return TypedValue(Schema.of(self._tools, self._name).member(self._key).kinds)
        return TypedValue(TEXT if self._typing == "string" else OTHER)

    def _in_value(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        spelling = self._spelling
        mark = text.find("<", at)
        while mark >= 0:
            behind = begins(text, mark, (spelling.value_end,), is_final=is_final)
            verdict = self._ends(text, behind, is_final) if behind >= 0 else behind
            if verdict >= 0:
                self._give(text[at:mark], base + mark, emit)
                emit.arguments(self._value.end(), base + behind)
                self._place = "between"
                return behind, None
            if verdict == PARTIAL:
                # At the answer's end it was cut off inside the closing tag, which is no value.
                self._give(text[at:mark], base + mark, emit)
                return (len(text) if is_final else mark), Outcome.MORE
            mark = text.find("<", mark + 1)
        self._give(text[at:], base + len(text), emit)
        return len(text), Outcome.MORE

    def _ends(self, text: str, behind: int, is_final: bool) -> int:
        """Whether what may follow a value stands at `behind`; at the answer's end, nothing may."""
        follow = skip_blank(text, behind)
        if follow == len(text):
            return follow if is_final else PARTIAL
        if follow == NO:
            return NO
        verdict = begins(
            text, follow, (self._spelling.param, self._spelling.end), is_final=is_final
        )
        return follow if verdict == PARTIAL and is_final else verdict

    def _give(self, text: str, end: int, emit: Emitter) -> None:
        if text:
            emit.arguments(self._value.push(text), end)

    def _in_json(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        """Arguments as one JSON text, as it was written."""
        closing = self._spelling.whole[1]
        while True:
            end = self._cursor.feed(text, at)
            emit.arguments(text[at:end], base + end)
            if self._cursor.is_over:
                self._place, self.is_whole = "closing", True
                return end, None
            if end == len(text):
                return end, Outcome.MORE
            # At a `<` outside strings: no JSON has it there.
            if begins(text, end, (closing,), is_final=False) == PARTIAL:
                return end, Outcome.MORE
            return end, Outcome.BROKEN

    def _closing(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        """Behind the JSON: its closing tag and the call's, taken together."""
        behind = at
        for tag in (self._spelling.whole[1], self._spelling.end):
            start = skip_blank(text, behind)
            behind = begins(text, start, (tag,), is_final=is_final) if start >= 0 else NO
            if behind == PARTIAL:
                return (len(text) if is_final else at), Outcome.MORE
            if behind == NO:
                return at, Outcome.BROKEN
        return self._finish(behind, emit)

    def save(self) -> object:
        return msgspec.to_builtins(TypedCallState(
            self._place, self._name, self._key, self._typing, self._count, self.held,
            self._value.save(), self._cursor.save(),
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, TypedCallState)
        self._place, self._name, self._key, self._typing = was.place, was.name, was.key, was.typing
        self._count, self.held = was.count, was.held
        self.is_started = was.place != "head"
        self.is_whole = was.place == "closing"
        self._value = self._new_value()
        self._value.restore(was.value)
        self._cursor.restore(was.cursor)
