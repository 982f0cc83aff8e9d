"""Reads a call that is written in one of two ways, told apart by how it begins. Knows neither."""

from __future__ import annotations

import re
from typing import ClassVar, Final, final

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader, Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.format import ReaderMaker

__all__ = ("SwitchCall",)

LEAD: Final = re.compile(r"[ \t\r\n]{0,64}(\[[ \t\r\n]{0,64})?")
"""What may stand before the character that tells."""


class _State(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    way: int
    held: str
    inner: object


@final
class SwitchCall(CallReader):
    """`objects` reads what begins with "{", or with "[" before it; `others` reads the rest."""

    kind: ClassVar[str] = "switch"

    def __init__(
        self, tools: tuple[ToolSpec, ...], objects: ReaderMaker, others: ReaderMaker
    ) -> None:
        self._tools = tools
        self._ways = (objects, others)
        self._way = -1
        self._inner: CallReader | None = None
        self.held = ""
        self.is_started = False
        self.is_whole = False

    @property
    def plain_until(self) -> str:
        return "" if self._inner is None else self._inner.plain_until

    def feed(
        self, text: str, at: int, base: int, emit: Emitter, *, is_final: bool
    ) -> tuple[int, Outcome]:
        if self._inner is None:
            lead = LEAD.match(text, at)
            end = at if lead is None else lead.end()
            if end == len(text):
                if not is_final:
                    return at, Outcome.MORE
                self.held += text[at:]
                return end, Outcome.MORE
            self._choose(0 if text[end] == "{" else 1)
        assert self._inner is not None
        step = self._inner.feed(text, at, base, emit, is_final=is_final)
        self._mirror()
        return step

    def _choose(self, way: int) -> None:
        self._way = way
        self._inner = self._ways[way](self._tools)
        self._inner.held = self.held

    def _mirror(self) -> None:
        if self._inner is not None:
            self.held = self._inner.held
            self.is_started, self.is_whole = self._inner.is_started, self._inner.is_whole

    def stop(self, end: int, emit: Emitter) -> None:
        if self._inner is not None:
            self._inner.stop(end, emit)

    def save(self) -> object:
        inner = None if self._inner is None else self._inner.save()
        return msgspec.to_builtins(_State(self._way, "" if inner else self.held, inner))

    def restore(self, state: object) -> None:
        was = msgspec.convert(state, _State)
        if not -1 <= was.way < len(self._ways):
            raise msgspec.ValidationError("a call is read in one of two ways")
        self.held = was.held
        if was.way >= 0:
            self._choose(was.way)
            assert self._inner is not None
            self._inner.restore(was.inner)
            self._mirror()
