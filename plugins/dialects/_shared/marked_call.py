"""Reads one call whose name and arguments stand apart by a marker, by its `MarkedShape`.

`begin` HEADER `sep` {"a": ...} `end`, or with the arguments in a fence of their own behind a line
with the name. The arguments go out as they were written. Knows no family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody, BodyState
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.headed_call import Header
from tokenwire.plugins.dialects._shared.tag_spelling import NO, PARTIAL, begins, skip_blank

__all__ = ("MarkedCall", "MarkedShape")

Place: TypeAlias = Literal["header", "line", "fence", "arguments", "after"]
Step: TypeAlias = tuple[int, Outcome | None]
"""None: go on."""
MAX_HEADER: Final = 256
FENCE: Final = "```"


class MarkedShape(Struct, frozen=True):
    sep: str
    """Between header and arguments."""
    ends: tuple[str, ...]
    """The call's end first; then what ends it too, where that is missing."""
    split: Callable[[str], Header | None]
    """The header's text to its parts; None where it is none."""
    has_line: bool = False
    """Whether a line with the name may stand behind `sep` (the header is the call's kind then), and
    the arguments in a fence."""


class MarkedState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    header: str
    held: str
    is_whole: bool
    body: BodyState


@final
class MarkedCall(CallReader):
    """For a `CallStart` whose marker is the call's beginning."""

    kind: ClassVar[str] = "marked"

    __slots__ = ("_body", "_header", "_place", "_shape", "held", "is_started", "is_whole")

    def __init__(self, shape: MarkedShape, tools: tuple[ToolSpec, ...]) -> None:
        self._shape = shape
        self._place: Place = "header"
        self._header = ""
        self._body = ArgumentBody()
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        return '"\\' if self._place == "arguments" and self._body.is_in_string else ""

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        outcome: Outcome | None = None
        while outcome is None:
            match self._place:
                case "header":
                    at, outcome = self._in_header(text, at, emit, is_final)
                case "line":
                    at, outcome = self._in_line(text, at, emit, is_final)
                case "fence":
                    at, outcome = self._in_fence(text, at, is_final)
                case "arguments":
                    at, outcome = self._in_arguments(text, at, base, emit, is_final)
                case "after":
                    at, outcome = self._behind(text, at, is_final)
        return at, outcome

    def stop(self, end: int, emit: Emitter) -> None:
        if self._place == "arguments":
            self._body.close(end, emit, is_marked=False)

    def _in_header(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        shape = self._shape
        # Why the first `<`: where a header breaks must not depend on how the text was cut.
        end = text.find("<", at, at + MAX_HEADER)
        behind = PARTIAL if end < 0 else begins(text, end, (shape.sep,), is_final=is_final)
        if behind == NO or (end < 0 and len(text) - at >= MAX_HEADER):
            return at, Outcome.BROKEN
        if behind == PARTIAL:
            return self._wait(text, at, is_final)
        self._header = text[at:end]
        if shape.has_line:
            self._place = "line"
            self.held += text[at:behind]
            return behind, None
        return self._announce(shape.split(self._header), behind, emit)

    def _announce(self, header: Header | None, at: int, emit: Emitter) -> Step:
        if header is None:
            return at, Outcome.BROKEN
        emit.start_call(header.name, header.id)
        self.is_started, self.held, self._header = True, "", ""
        self._place = "arguments"
        return at, None

    def _in_line(self, text: str, at: int, emit: Emitter, is_final: bool) -> Step:
        """A line with the name, or the arguments of the tool that the header names."""
        start = skip_blank(text, at)
        if start == NO:
            return at, Outcome.BROKEN
        if start == len(text):
            return self._wait(text, at, is_final)
        if text[start] == "{" or begins(text, start, self._shape.ends, is_final=True) >= 0:
            return self._announce(self._shape.split(self._header), start, emit)
        end = text.find("\n", start, start + MAX_HEADER)
        name = text[start : end if end >= 0 else len(text)]
        if end < 0 and len(name) < MAX_HEADER and self._shape.ends[0] not in name:
            return self._wait(text, at, is_final)
        header = self._shape.split(name.strip()) if end >= 0 else None
        at, outcome = self._announce(header, end + 1 if header else at, emit)
        if outcome is None:
            self._place = "fence"
        return at, outcome

    def _in_fence(self, text: str, at: int, is_final: bool) -> Step:
        """The line that opens the fence, if there is one."""
        start = skip_blank(text, at)
        if start == NO:
            start = at
        if start == len(text):
            return start, Outcome.MORE
        behind = begins(text, start, (FENCE,), is_final=is_final)
        if behind == PARTIAL:
            return (len(text) if is_final else start), Outcome.MORE
        if behind >= 0:
            line = text.find("\n", behind, behind + MAX_HEADER)
            if line < 0 and len(text) - behind < MAX_HEADER:
                return (len(text) if is_final else start), Outcome.MORE
            start = line + 1 if line >= 0 else start
        self._place = "arguments"
        return start, None

    def _in_arguments(self, text: str, at: int, base: int, emit: Emitter, is_final: bool) -> Step:
        body = self._body
        while True:
            at = body.feed(text, at, base, emit)
            if body.mode == "over":
                self.is_whole = True
                body.close(base + at, emit, is_marked=True)
                self._place = "after"
                return at, None
            if at == len(text):
                return at, Outcome.MORE
            behind = begins(text, at, self._shape.ends, is_final=is_final)
            if behind == PARTIAL and not is_final:
                return at, Outcome.MORE
            if behind >= 0:
                body.close(base + at, emit, is_marked=True)
                is_own = text.startswith(self._shape.ends[0], at)
                return (behind if is_own else at), Outcome.DONE
            at = body.skip(at, base, emit)

    def _behind(self, text: str, at: int, is_final: bool) -> Step:
        """Behind the arguments: what closes the fence, and the call's end."""
        start = skip_blank(text, at)
        if start == NO:
            return at, Outcome.DONE
        tags = (FENCE, self._shape.ends[0]) if self._shape.has_line else self._shape.ends[:1]
        behind = begins(text, start, tags, is_final=is_final)
        if behind == PARTIAL:
            return (len(text) if is_final else at), Outcome.MORE
        if behind == NO:
            return at, Outcome.DONE
        if text.startswith(FENCE, start):
            return behind, None
        return behind, Outcome.DONE

    def save(self) -> object:
        return msgspec.to_builtins(MarkedState(
            self._place, self._header, self.held, self.is_whole, self._body.save()
        ))  # fmt: skip

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, MarkedState)
        self._place, self._header, self.held = was.place, was.header, was.held
        self.is_whole = was.is_whole
        self.is_started = was.place not in ("header", "line")
        self._body = ArgumentBody.restored(was.body)
