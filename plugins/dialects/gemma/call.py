"""Reads Gemma calls from behind their marker: `call:NAME{...}`. Knows no parser.

The call is announced at its first brace; its arguments go out as JSON, while they come. The end
marker is left to the parser: the call ends with its last brace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.schema import Schema
from tokenwire.plugins.dialects.gemma.arguments import Arguments
from tokenwire.plugins.dialects.gemma.state import ArgumentsState

__all__ = ("GemmaCallReader", "gemma_calls")

HEADER: Final = re.compile(r"\s*call:\s*([^\s{}<>\"']+)\s*")
MAX_HEADER: Final = 256


class _Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    header: str
    held: str
    name: str
    arguments: ArgumentsState | None


def gemma_calls(quote: str, end: str) -> Callable[[tuple[ToolSpec, ...]], CallReader]:
    """For a `CallStart`. `quote`: before and behind strings; `end`: of the call."""

    def make(tools: tuple[ToolSpec, ...]) -> CallReader:
        return GemmaCallReader(quote, end, tools)

    return make


@final
class GemmaCallReader(CallReader):
    kind: ClassVar[str] = "gemma"
    __slots__ = ("_arguments", "_end", "_header", "_name", "_quote", "_tools", "held", "is_whole")

    def __init__(self, quote: str, end: str, tools: tuple[ToolSpec, ...]) -> None:
        self._quote = quote
        self._end = end
        self._tools = tools
        self._header = ""
        self._name = ""
        self._arguments: Arguments | None = None
        self.held = ""
        self.is_whole = False

    @property
    def is_started(self) -> bool:  # type: ignore[override]
        return self._arguments is not None

    @property
    def plain_until(self) -> str:
        return "" if self._arguments is None else self._arguments.plain_until

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        if self._arguments is None:
            at, outcome = self._in_header(text, at, emit)
            if self._arguments is None:
                return at, outcome
        at, progress = self._arguments.feed(text, at, is_final=is_final)
        emit.arguments(self._arguments.take(), base + at)
        if progress == "over":
            self.is_whole = True
            emit.close()
            return at, Outcome.DONE
        return at, Outcome.BROKEN if progress == "broken" else Outcome.MORE

    def _in_header(self, text: str, at: int, emit: Emitter) -> tuple[int, Outcome]:
        room = MAX_HEADER - len(self._header)
        brace = text.find("{", at, at + room)
        end = min(len(text), at + room) if brace < 0 else brace
        stop = text.find("<", at, end)
        if stop >= 0:
            # Why: no name has it, and a marker may begin there.
            end, brace = stop, -1
        self._header += text[at:end]
        self.held += text[at:end]
        if brace < 0:
            is_broken = stop >= 0 or len(self._header) >= MAX_HEADER
            return end, Outcome.BROKEN if is_broken else Outcome.MORE
        found = HEADER.fullmatch(self._header)
        if found is None:
            return end, Outcome.BROKEN
        emit.start_call(found[1])
        self._begin(found[1])
        self._header = self.held = ""
        return end, Outcome.MORE

    def _begin(self, name: str) -> Arguments:
        self._name = name
        schema = Schema.of(self._tools, name)
        self._arguments = Arguments(self._quote, self._end, schema)
        return self._arguments

    def save(self) -> object:
        arguments = None if self._arguments is None else self._arguments.save()
        return msgspec.to_builtins(_Saved(self._header, self.held, self._name, arguments))

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _Saved)
        self._header, self.held = was.header, was.held
        if was.arguments is not None:
            self._begin(was.name).restore(was.arguments)
