"""Reads one call whose arguments are nested tags, each behind the family's namespace token.

`<key>value</key>` is a member, `<item>value</item>` an element, and the tool's schema says which
types the values are; where it does not, tags named `item` make a list. Argument text is built while
the tags come. Null members are not written by this family, so they cannot be read.
"""

from __future__ import annotations

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
    begins,
    name_at,
    skip_blank,
)
from tokenwire.plugins.dialects._shared.typed_value import (
    ESCAPED,
    TypedValue,
    ValueState,
    quoted,
)

__all__ = ("NestedCall",)

Place: TypeAlias = Literal["head", "between", "opening", "value"]
Bracket: TypeAlias = Literal["", "{", "["]
Step: TypeAlias = tuple[int, Outcome | None]
"""None: go on."""

CLOSERS: Final[dict[Bracket, str]] = {"": "", "{": "}", "[": "]"}
ITEM: Final = "item"
MAX_DEPTH: Final = 32


class Frame(Struct, array_like=True, forbid_unknown_fields=True):
    """An open tag; the lowest one is the call."""

    name: str
    bracket: Bracket = ""
    """Of what its children make; "" while it has none."""
    count: int = 0


class NestedState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    frames: list[Frame]
    held: str
    tail: str
    value: ValueState


@final
class NestedCall(CallReader):
    """`space`: the namespace token before each tag; `close`: the end of a section of calls.
    `is_lone`: the marker was the call's own head, and the name must be that of a tool."""

    kind: ClassVar[str] = "nested"

    __slots__ = (
        "_close", "_end", "_frames", "_head", "_is_lone", "_place", "_schemas", "_space", "_tail",
        "_tools", "_value", "held", "is_started", "is_whole",
    )  # fmt: skip

    def __init__(
        self, space: str, tools: tuple[ToolSpec, ...], *, close: str, is_lone: bool = False
    ) -> None:
        self._space = space
        self._head = f'{space}<invoke name="'
        self._end = f"{space}</invoke>"
        self._close = close
        self._tools = tools
        self._is_lone = is_lone
        self._place: Place = "head"
        self._frames: list[Frame] = []
        self._schemas: list[Schema] = []
        self._value = TypedValue(Schema(None, None).kinds)
        self._tail = ""  # of a value: what may have begun a tag when a special token came
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        if self._value.is_string and self._place == "value":
            return ESCAPED + self._space[0]
        return ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        outcome: Outcome | None = None
        if self._tail:
            self._place = "value"
            self._give(self._tail, base + at, emit)
            self._tail = ""
        while outcome is None:
            match self._place:
                case "head":
                    at, outcome = self._in_head(text, at, emit, is_final)
                case "between":
                    at, outcome = self._between(text, at, base, emit, is_final)
                case "opening":
                    at, outcome = self._opening(text, at, base, emit, is_final)
                case "value":
                    at, outcome = self._in_value(text, at, base, emit, is_final)
        return at, outcome

    def stop(self, end: int, emit: Emitter) -> None:
        if self._place == "value":
            emit.arguments(self._value.stop(), end)

    def _in_head(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        name, behind = "", at
        if not self._is_lone:
            behind = skip_blank(text, at)
            if behind >= 0:
                behind = begins(text, behind, (self._head,), is_final=is_final)
        if behind >= 0:
            name, behind = name_at(text, behind, ('">',), is_final=is_final)
        is_known = not self._tools or any(tool.name == name for tool in self._tools)
        if behind == NO or (self._is_lone and (not is_known if behind >= 0 else is_final)):
            return at, Outcome.BROKEN
        if behind == PARTIAL:
            return self._wait(text, at, is_final)
        self.held = ""
        self.is_started = True
        self._frames, self._schemas = [Frame(name, "{")], [Schema.of(self._tools, name)]
        self._place = "between"
        emit.start_call(name)
        return behind, None

    def _between(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        """Behind a tag: its parent's end, or another child."""
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return at, Outcome.MORE
        ended = begins(text, at, (self._end, self._close), is_final=is_final)
        if ended >= 0:
            return self._finish(ended, base, emit)
        closed = begins(text, at, self._closer(), is_final=is_final)
        if closed >= 0:
            frame = self._pop()
            emit.arguments(CLOSERS[frame.bracket], base + closed)
            return closed, None
        name, behind = self._child(text, at, is_final)
        if behind >= 0 and len(self._frames) <= MAX_DEPTH:
            self._push(name, base + behind, emit)
            return behind, None
        if PARTIAL in (ended, closed, behind):
            return self._wait(text, at, is_final)
        return at, Outcome.BROKEN

    def _closer(self) -> tuple[str, ...]:
        if len(self._frames) < 2:
            return ()
        return (f"{self._space}</{self._frames[-1].name}>",)

    def _child(self, text: str, at: int, is_final: bool) -> tuple[str, int]:
        """The name of the tag that opens at `at`, and the index behind it; or NO or PARTIAL."""
        behind = begins(text, at, (f"{self._space}<",), is_final=is_final)
        if behind < 0:
            return "", behind
        if text.startswith("/", behind):
            return "", NO
        return name_at(text, behind, (">",), is_final=is_final)

    def _push(self, name: str, end: int, emit: Emitter) -> None:
        parent, schema = self._frames[-1], self._schemas[-1]
        is_root = len(self._frames) == 1
        before = ", " if parent.count else ("{" if is_root else "")
        parent.count += 1
        if parent.bracket == "{":
            before += f"{quoted(name)}: "
        emit.arguments(before, end)
        self._frames.append(Frame(name))
        self._schemas.append(schema.item() if parent.bracket == "[" else schema.member(name))
        self._value = TypedValue(self._schemas[-1].kinds)
        self._place = "opening"

    def _pop(self) -> Frame:
        self._schemas.pop()
        self._place = "between"
        return self._frames.pop()

    def _finish(self, at: int, base: int, emit: Emitter) -> Step:
        """The call's end; where tags are open, it is not a whole one."""
        if len(self._frames) == 1:
            emit.arguments("}" if self._frames[0].count else "{}", base + at)
            self.is_whole = True
        emit.close(is_complete=self.is_whole)
        return at, Outcome.DONE

    def _opening(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        """Behind a tag that opened: a value, or children."""
        behind = skip_blank(text, at)
        if behind != NO:
            name, verdict = self._child(text, behind, is_final=False)
            if verdict == PARTIAL:
                return self._hold(text, at, is_final)
            if verdict >= 0:
                frame = self._frames[-1]
                frame.bracket = self._bracket(name)
                emit.arguments(frame.bracket, base + behind)
                self._place = "between"
                return behind, None
        self._place = "value"
        return at, None

    def _bracket(self, child: str) -> Bracket:
        kinds = self._schemas[-1].kinds
        if child != ITEM or ("object" in kinds and "array" not in kinds):
            return "{"
        return "["

    def _in_value(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        (closer,) = self._closer()
        markers = (closer, self._end, self._close)
        found = text.find(self._space[0], at)
        while found >= 0:
            verdict = begins(text, found, markers, is_final=False)
            if verdict >= 0:
                self._give(text[at:found], base + found, emit)
                if not text.startswith(closer, found):
                    emit.arguments(self._value.stop(), base + found)
                    return self._finish(verdict, base, emit)
                emit.arguments(self._whole_value(), base + verdict)
                self._pop()
                return verdict, None
            if verdict == PARTIAL:
                self._give(text[at:found], base + found, emit)
                return self._hold(text, found, is_final)
            found = text.find(self._space[0], found + 1)
        self._give(text[at:], base + len(text), emit)
        return len(text), Outcome.MORE

    def _hold(self, text: str, at: int, is_final: bool) -> Step:
        """What may begin a tag is no text yet, and none at all if the answer ends there."""
        if not is_final:
            return at, Outcome.MORE
        self._tail = text[at:]
        return len(text), Outcome.MORE

    def _whole_value(self) -> str:
        """The rest of a value. One of no text is empty in the way that its type is."""
        kinds = self._schemas[-1].kinds
        rest = self._value.end()
        if self._value.is_string or rest != '""' or "string" in kinds:
            return rest
        empty = {"array": "[]", "object": "{}", "null": "null"}
        return next((text for kind, text in empty.items() if kind in kinds), rest)

    def _give(self, text: str, end: int, emit: Emitter) -> None:
        if text:
            emit.arguments(self._value.push(text), end)

    def save(self) -> object:
        return msgspec.to_builtins(
            NestedState(self._place, self._frames, self.held, self._tail, self._value.save())
        )

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, NestedState)
        if (was.place == "head") != (not was.frames):
            raise msgspec.ValidationError("a nested call has open tags once it has its name")
        self._place, self._frames = was.place, was.frames
        self.held, self._tail = was.held, was.tail
        self.is_started = bool(was.frames)
        for depth, frame in enumerate(was.frames):
            if not depth:
                self._schemas = [Schema.of(self._tools, frame.name)]
                continue
            above = self._schemas[-1]
            is_item = was.frames[depth - 1].bracket == "["
            self._schemas.append(above.item() if is_item else above.member(frame.name))
        if self._schemas:
            self._value = TypedValue(self._schemas[-1].kinds)
        self._value.restore(was.value)
