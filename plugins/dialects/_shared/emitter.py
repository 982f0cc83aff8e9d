"""Collects one choice's part events in their legal order: opens and closes parts as text comes."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from tokenwire.core.events import PartDelta, PartEnd, PartStart
from tokenwire.core.ports.dialect import PartEvent

__all__ = ("Emitter", "OpenPart")

OpenPart: TypeAlias = Literal["", "text", "reasoning", "tool_call"]


@final
class Emitter:
    """`is_open` says which part is: "" for none. `calls`: how many were announced."""

    __slots__ = ("_choice", "_events", "calls", "is_open")

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._events: list[PartEvent] = []
        self.is_open: OpenPart = ""
        self.calls = 0

    def text(self, kind: Literal["text", "reasoning"], text: str, end: int) -> None:
        """More text of `kind`; nothing for "". `end`: raw characters read where it ends."""
        if not text:
            return
        if self.is_open != kind:
            self.close()
            self._events.append(PartStart(self._choice, kind))
            self.is_open = kind
        self._events.append(PartDelta(self._choice, text, end))

    def start_call(self, name: str, call_id: str | None = None) -> None:
        self.close()
        self._events.append(PartStart(self._choice, "tool_call", name, call_id))
        self.is_open = "tool_call"
        self.calls += 1

    def arguments(self, text: str, end: int) -> None:
        if text:
            self._events.append(PartDelta(self._choice, text, end))

    def close(self, *, is_complete: bool = True) -> None:
        """End the open part, if there is one."""
        if self.is_open:
            self._events.append(PartEnd(self._choice, is_complete))
            self.is_open = ""

    def take(self) -> list[PartEvent]:
        """What came since the last time."""
        events = self._events
        self._events = []
        return events
