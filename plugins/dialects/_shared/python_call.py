"""Reads calls written as Python, `[f(x=1), g()]`, from behind their marker. Knows no markers.

A call is announced at its first argument or its closing bracket; its arguments go out as a JSON
object, while they come. A value without a name is the argument that stands at its place in the
tool's schema; where the schema has none, the text is no call. The list's brackets may be missing,
as where calls stand in lines. After a call, what is no other one ends the list.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.python_value import PythonValue, ValueState

__all__ = ("PythonCall",)

Place: TypeAlias = Literal["open", "argument", "value", "after", "between"]
"""`open`: before the first call; `argument`: where one may begin; `after`: behind one; `between`:
behind a call."""
Step: TypeAlias = tuple[int, Outcome]

BLANK: Final = " \t\r\n"
NAME: Final = re.compile(r"""[^\s()\[\]{}<>"'=,;:]{1,256}""")
KEY: Final = re.compile(r"""[^\s()\[\]{}<>"'=,:][^()\[\]{}<>"'=,:]{0,255}""")
GAP: Final = re.compile(r"[ \t\r\n]{0,64}")
LITERAL: Final = "\"'[({+-.0123456789"
"""What a value without a name begins with (beside the constants)."""
CONSTANTS: Final = ("True", "False", "None")
MAX_OPEN: Final = 256
"""Characters of white space before the first call."""


class _State(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    name: str
    count: int
    in_list: bool
    value: ValueState | None
    held: str
    is_started: bool
    is_whole: bool


@final
class PythonCall(CallReader):
    """`is_known`: only the names of tools begin calls. `is_lax`: see PythonValue. `method`: dropped
    from the end of names."""

    kind = "python"

    def __init__(
        self,
        tools: tuple[ToolSpec, ...],
        *,
        is_known: bool = False,
        is_lax: bool = False,
        method: str = "",
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._in_list = False
        self._is_known = is_known
        self._is_lax = is_lax
        self._method = method
        self._place: Place = "open"
        self._name = ""
        self._count = 0  # arguments that were begun
        self._value: PythonValue | None = None
        self._waits = False  # it takes more text to decide
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        return "" if self._value is None else self._value.plain_until

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        self._waits = False
        while at < len(text):
            start = at
            at, outcome = self._step(text, at, base, emit)
            if self._waits and not is_final:
                return at, outcome
            if self._waits:
                at = len(text)
            if not self.is_started:
                self.held += text[start:at]
            if outcome is not Outcome.MORE:
                return at, outcome
        return at, Outcome.MORE

    def _step(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        match self._place:
            case "value":
                return self._in_value(text, at, base, emit)
            case "open":
                return self._open(text, at, base, emit)
            case "between":
                return self._between(text, at, base, emit)
            case "after":
                return self._after(text, at, base, emit)
            case _:
                if text[at] in BLANK:
                    return at + 1, Outcome.MORE
                return self._argument(text, at, base, emit)

    def _open(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        character = text[at]
        if character in BLANK and len(self.held) < MAX_OPEN:
            return at + 1, Outcome.MORE
        if character == "[" and not self._in_list:
            self._in_list = True
            return at + 1, Outcome.MORE
        return self._begin(text, at, base, emit)

    def _between(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        if text[at] in BLANK or text[at] in ",;":
            return at + 1, Outcome.MORE
        if text[at] == "]" and self._in_list:
            return at + 1, Outcome.DONE
        end, outcome = self._begin(text, at, base, emit)
        return (end, Outcome.DONE) if outcome is Outcome.BROKEN else (end, outcome)

    def _begin(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        """A call, from its name on, up to where its first argument begins or it ends."""
        run = NAME.match(text, at)
        if run is None:
            return at, Outcome.BROKEN
        end = run.end()
        if end == len(text):
            return self._wait_at(at)
        name = run.group().removesuffix(self._method)
        if text[end] != "(" or not name or (self._is_known and name not in self._tools):
            return at, Outcome.BROKEN
        first = _behind_gap(text, end + 1)
        if first == len(text):
            return self._wait_at(at)
        self._name, self._count = name, 0
        stop, outcome = self._argument(text, first, base, emit)
        return (at if self._waits or outcome is Outcome.BROKEN else stop), outcome

    def _wait_at(self, at: int) -> Step:
        self._waits = True
        return at, Outcome.MORE

    def _argument(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        """An argument's name, or its value where that has none, or the call's end."""
        if text[at] == ")":
            self._announce(emit)
            emit.arguments("{}" if self._count == 0 else "}", base + at + 1)
            emit.close()
            self._place, self.is_whole = "between", True
            return at + 1, Outcome.MORE
        if text[at] in LITERAL:
            return self._begin_unnamed(at, base, emit)
        run = KEY.match(text, at)
        if run is None:
            return at, Outcome.BROKEN
        end, word = run.end(), run.group().rstrip()
        if end == len(text):
            return self._wait_at(at)
        if text[end] == "=":
            self._begin_value(word, base + end + 1, emit)
            return end + 1, Outcome.MORE
        if text[end] in ",)" and word in CONSTANTS:
            return self._begin_unnamed(at, base, emit)
        return at, Outcome.BROKEN

    def _announce(self, emit: Emitter) -> None:
        if self._count == 0:
            emit.start_call(self._name)
            self.is_started, self.is_whole, self.held = True, False, ""

    def _begin_unnamed(self, at: int, base: int, emit: Emitter) -> Step:
        names = _property_names(self._tools.get(self._name))
        if self._count >= len(names):
            return at, Outcome.BROKEN
        self._begin_value(names[self._count], base + at, emit)
        return at, Outcome.MORE

    def _begin_value(self, key: str, end: int, emit: Emitter) -> None:
        self._announce(emit)
        lead = ", " if self._count else "{"
        emit.arguments(f"{lead}{json.dumps(key, ensure_ascii=False)}: ", end)
        self._count += 1
        self._value, self._place = PythonValue(is_lax=self._is_lax), "value"

    def _in_value(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        value = self._value
        assert value is not None
        at, json_text = value.feed(text, at)
        emit.arguments(json_text, base + at)
        if value.is_over:
            self._value, self._place = None, "after"
        return at, Outcome.BROKEN if value.is_broken else Outcome.MORE

    def _after(self, text: str, at: int, base: int, emit: Emitter) -> Step:
        if text[at] == ")":
            return self._argument(text, at, base, emit)
        if text[at] == ",":
            self._place = "argument"
        elif text[at] not in BLANK:
            return at, Outcome.BROKEN
        return at + 1, Outcome.MORE

    def stop(self, end: int, emit: Emitter) -> None:
        if self._value is not None:
            emit.arguments(self._value.finish(), end)

    def save(self) -> object:
        value = None if self._value is None else self._value.save()
        return msgspec.to_builtins(_State(
            self._place, self._name, self._count, self._in_list, value, self.held, self.is_started,
            self.is_whole,
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _State)
        self._place, self._name, self._count = was.place, was.name, was.count
        self._in_list, self.held = was.in_list, was.held
        self.is_started, self.is_whole = was.is_started, was.is_whole
        self._value = None
        if was.value is not None:
            self._value = PythonValue(is_lax=self._is_lax)
            self._value.restore(was.value)


def _behind_gap(text: str, at: int) -> int:
    gap = GAP.match(text, at)
    return at if gap is None else gap.end()


def _property_names(tool: ToolSpec | None) -> tuple[str, ...]:
    """In the order of the schema."""
    if tool is None or not tool.parameters:
        return ()
    try:
        schema = json.loads(tool.parameters)
    except ValueError:
        return ()
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(properties) if isinstance(properties, dict) else ()
