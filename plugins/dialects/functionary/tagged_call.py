"""Reads Functionary v3.1 calls from behind their marker: `NAME>{...}</function>`, or code.

Knows no parser. The arguments go out as they were written, while they come.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.argument_body import ArgumentBody, BodyState
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL, Tags

__all__ = ("CODE", "CodeReader", "FunctionReader")

NAME: Final = re.compile(r"[^\s<>{}\"']{1,128}")
NAME_END: Final = ">"
ENDS: Final = Tags(("</function>",))
CODE: Final = "python"
"""The tool that takes code."""


class _Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    held: str
    name: str
    body: BodyState | None
    is_whole: bool


class _NamedReader(CallReader):
    """What both have: a body, once the name is known."""

    __slots__ = ("_body", "_name", "held", "is_whole")

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._name = ""  # what came of it
        self._body: ArgumentBody | None = None
        self.held = ""
        self.is_whole = False

    @property
    def is_started(self) -> bool:  # type: ignore[override]
        return self._body is not None

    @property
    def plain_until(self) -> str:
        return '"\\' if self._body is not None and self._body.is_in_string else ""

    def _begin(self, name: str, emit: Emitter) -> ArgumentBody:
        emit.start_call(name)
        self._body = ArgumentBody()
        self.held = self._name = ""
        return self._body

    def stop(self, end: int, emit: Emitter) -> None:
        if self._body is not None and emit.is_open == "tool_call":
            self._body.close(end, emit, is_marked=False)

    def save(self) -> object:
        body = None if self._body is None else self._body.save()
        return msgspec.to_builtins(_Saved(self.held, self._name, body, self.is_whole))

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _Saved)
        self.held, self._name, self.is_whole = was.held, was.name, was.is_whole
        self._body = None if was.body is None else ArgumentBody.restored(was.body)


@final
class FunctionReader(_NamedReader):
    """Behind `<function=`. The closing tag is read where it stands; without it the call ends with
    its JSON."""

    kind: ClassVar[str] = "function"

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        while at < len(text):
            body = self._body
            if body is None:
                at, outcome = self._in_name(text, at, emit)
                if outcome is not Outcome.MORE:
                    return at, outcome
                continue
            at = body.feed(text, at, base, emit)
            if body.mode == "over":
                body.close(base + at, emit, is_marked=True)
                self.is_whole = True
                return at, Outcome.DONE
            marker = NO_MARKER if at == len(text) else ENDS.at(text, at, is_final=is_final)
            if marker == PARTIAL:
                break
            if marker and body.mode == "json":
                return at, Outcome.BROKEN
            if marker:
                body.close(base + at, emit, is_marked=True)
                self.is_whole = True
                return at + len(marker), Outcome.DONE
            if at < len(text):
                at = body.skip(at, base, emit)
        return at, Outcome.MORE

    def _in_name(self, text: str, at: int, emit: Emitter) -> tuple[int, Outcome]:
        stop = text.find(NAME_END, at)
        end = len(text) if stop < 0 else stop
        name = self._name + text[at:end]
        found = NAME.match(name)
        if found is None or found.end() < len(name):
            # Why nothing of it is read: how much came at once must not matter.
            return at, Outcome.BROKEN
        if stop < 0:
            self._name = name
            self.held += text[at:end]
            return end, Outcome.MORE
        self._begin(name, emit)
        return stop + len(NAME_END), Outcome.MORE


@final
class CodeReader(_NamedReader):
    """Behind `<|python_tag|>`: the rest of the answer, for a tool called `python`; text again where
    there is no such tool."""

    kind: ClassVar[str] = "code"

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        super().__init__(tools)
        self._is_tool = any(tool.name == CODE for tool in tools)

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        if not self._is_tool:
            return at, Outcome.BROKEN
        body = self._body or self._begin(CODE, emit)
        while at < len(text):
            at = body.feed(text, at, base, emit)
            if body.mode == "over":
                body.close(base + at, emit, is_marked=True)
                self.is_whole = True
                return at, Outcome.DONE
            if at < len(text):
                at = body.skip(at, base, emit)
        return at, Outcome.MORE
