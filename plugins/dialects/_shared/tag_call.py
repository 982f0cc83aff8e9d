"""Reads one call with bare values in tags, `<function=f><parameter=a>…`, by its `TagSpelling`.

Argument text is built while the values come: `{"a": `, the value as JSON, `, "b": `, and so on. A
parameter that is written twice stands twice, as the model said it. A call that is cut off ends
where the model ended. Knows no family.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.schema import Schema
from tokenwire.plugins.dialects._shared.tag_spelling import (
    NO,
    PARTIAL,
    TagSpelling,
    bare_name_at,
    begins,
    name_at,
    skip_blank,
    value_end,
)
from tokenwire.plugins.dialects._shared.typed_value import (
    ESCAPED,
    TypedValue,
    ValueState,
    quoted,
)

__all__ = ("TagCall",)

Place: TypeAlias = Literal["head", "between", "opening", "value", "cdata"]
Step: TypeAlias = tuple[int, Outcome | None]
"""None: go on."""

TAG: Final = re.compile(r"\n?<|\n\Z")
CDATA_END: Final = re.compile(r"\]")


class TagCallState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    name: str
    key: str
    count: int
    held: str
    tail: str
    value: ValueState


@final
class TagCall(CallReader):
    """`is_lone`: no marker of the family stands before the call, so it counts only where it names
    a tool that there is."""

    kind: ClassVar[str] = "tag"

    __slots__ = (
        "_count", "_is_lone", "_key", "_name", "_place", "_schema", "_spelling", "_tail", "_tools",
        "_value", "held", "is_started", "is_whole",
    )  # fmt: skip

    def __init__(
        self, spelling: TagSpelling, tools: tuple[ToolSpec, ...], *, is_lone: bool = False
    ) -> None:
        self._spelling = spelling
        self._tools = tools
        self._is_lone = is_lone
        self._place: Place = "head"
        self._name = ""
        self._schema = Schema(None, None)
        self._key = ""
        self._count = 0
        self._value = TypedValue(self._schema.kinds)
        self._tail = ""  # of a value: what may have begun a tag when a special token came
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        if self._value.is_string and self._place in ("value", "cdata"):
            return ESCAPED + ("<" if self._place == "value" else "]")
        return ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        outcome: Outcome | None = None
        if self._tail:
            self._place = "cdata" if self._place == "cdata" else "value"
            self._give(self._tail, base + at, emit)
            self._tail = ""
        while outcome is None:
            match self._place:
                case "head":
                    at, outcome = self._head(text, at, emit, is_final)
                case "between":
                    at, outcome = self._between(text, at, base, emit, is_final)
                case "opening":
                    at, outcome = self._opening(text, at, is_final)
                case "value" | "cdata":
                    at, outcome = self._in_value(text, at, base, emit, is_final)
        return at, outcome

    def stop(self, end: int, emit: Emitter) -> None:
        if self._place in ("value", "cdata"):
            emit.arguments(self._value.stop(), end)

    def _head(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        spelling = self._spelling
        start = skip_blank(text, at)
        name, behind = "", start
        if start >= 0 and spelling.head and not self._is_lone:
            behind = begins(text, start, (spelling.head,), is_final=is_final)
        if behind >= 0:
            if spelling.name_end:
                name, behind = name_at(text, behind, (spelling.name_end,), is_final=is_final)
            else:
                follow = (spelling.param, spelling.end)
                name, behind = bare_name_at(text, behind, follow, is_final=is_final)
        is_known = not self._tools or any(tool.name == name for tool in self._tools)
        if behind == NO or (self._is_lone and (not is_known if behind >= 0 else is_final)):
            return at, Outcome.BROKEN
        if behind == PARTIAL:
            return self._wait(text, at, is_final)
        self.held = ""
        self._begin(name)
        emit.start_call(name)
        return behind, None

    def _begin(self, name: str) -> None:
        self._name = name
        self._schema = Schema.of(self._tools, name)
        self.is_started = True
        self._place = "between"

    def _between(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        spelling = self._spelling
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return at, Outcome.MORE
        key = begins(text, at, (spelling.param,), is_final=is_final)
        if key >= 0:
            name, key = name_at(text, key, spelling.key_end, is_final=is_final)
            if key >= 0:
                self._begin_value(name)
                before = ", " if self._count > 1 else "{"
                emit.arguments(f"{before}{quoted(name)}: ", base + key)
                return key, None
        end = begins(text, at, (spelling.end, spelling.close), is_final=is_final)
        if end >= 0:
            emit.arguments("}" if self._count else "{}", base + end)
            self.is_whole = True
            emit.close()
            return end, Outcome.DONE
        if PARTIAL in (key, end):
            return self._wait(text, at, is_final)
        return at, Outcome.BROKEN

    def _begin_value(self, key: str) -> None:
        self._key = key
        self._count += 1
        self._place = "opening"
        self._value = TypedValue(self._schema.member(key).kinds, python=self._spelling.python)

    def _opening(self, text: str, at: int, is_final: bool) -> Step:
        """What belongs to the markup at a value's beginning."""
        if at == len(text):
            return at, Outcome.MORE
        self._place = "value"
        if opening := self._spelling.cdata[0]:
            behind = begins(text, at, (opening,), is_final=is_final)
            if behind == PARTIAL:
                self._place = "opening"
                return self._hold(text, at, is_final)
            if behind >= 0:
                self._place = "cdata"
                return behind, None
        return at + (self._spelling.trim and text[at] == "\n"), None

    def _in_value(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        spelling = self._spelling
        is_cdata = self._place == "cdata"
        closing = (spelling.cdata[1] if is_cdata else "") + spelling.value_end
        for found in (CDATA_END if is_cdata else TAG).finditer(text, at):
            start = found.start()
            is_line = text[start] == "\n"
            mark = start + is_line
            stop = start if spelling.trim else mark
            end = value_end(
                text,
                mark,
                spelling,
                closing=closing,
                is_other=self._is_other if is_line else None,
            )
            if end == NO:
                continue
            if end == PARTIAL:
                self._give(text[at:start], base + start, emit)
                return self._hold(text, start, is_final)
            self._give(text[at:stop], base + stop, emit)
            emit.arguments(self._value.end(), base + end)
            self._place = "between"
            return end, None
        self._give(text[at:], base + len(text), emit)
        return len(text), Outcome.MORE

    def _hold(self, text: str, at: int, is_final: bool) -> Step:
        """What may begin a tag is no text yet, and none at all if the answer ends there."""
        if not is_final:
            return at, Outcome.MORE
        self._tail = text[at:]
        return len(text), Outcome.MORE

    def _is_other(self, name: str) -> bool:
        return name != self._key and name in self._schema.members

    def _give(self, text: str, end: int, emit: Emitter) -> None:
        if text:
            emit.arguments(self._value.push(text), end)

    def save(self) -> object:
        return msgspec.to_builtins(
            TagCallState(
                self._place,
                self._name,
                self._key,
                self._count,
                self.held,
                self._tail,
                self._value.save(),
            )
        )

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, TagCallState)
        if was.place != "head":
            self._begin(was.name)
            self._value = TypedValue(
                self._schema.member(was.key).kinds, python=self._spelling.python
            )
        self._place, self._key, self._count = was.place, was.key, was.count
        self.held, self._tail = was.held, was.tail
        self._value.restore(was.value)
