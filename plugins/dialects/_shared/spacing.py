"""White space next to markers: what belongs to the marker is dropped, everything else is kept.

Text that is only white space waits, for it is no text if a call follows. Some newlines before a
call belong to the call; in reasoning, the newlines before the closing marker belong to that.
"""

from __future__ import annotations

from typing import Final, Literal, final

from tokenwire.plugins.dialects._shared.emitter import Emitter

__all__ = ("MAX_BLANK", "Spacing")

MAX_BLANK: Final = 256
"""Characters of white space that are held."""


@final
class Spacing:
    """`blank` is what waits, and `end` where it ends in the raw text. While `trims`, the characters
    of `trimmed` still belong to the marker before them. `lead`: how many newlines before a call
    belong to it."""

    __slots__ = ("_emit", "_lead", "_trimmed", "blank", "end", "trims")

    def __init__(self, emit: Emitter, *, trimmed: str, lead: int, trims: bool) -> None:
        self._emit = emit
        self._trimmed = trimmed
        self._lead = lead
        self.blank = ""
        self.end = 0
        self.trims = trims

    def begin(self) -> None:
        """Behind a marker."""
        self.blank, self.trims = "", True

    def say(self, text: str, end: int, *, can_wait: bool, before_calls: bool) -> None:
        """Visible text. `can_wait`: white space may yet turn out to be none."""
        text = self._begun(text)
        if not text:
            return
        if not (can_wait and text.isspace()):
            self._catch_up("text", end - len(text))
        text, self.blank, self.end = self.blank + text, "", end
        if can_wait and text.isspace() and len(text) <= MAX_BLANK:
            self.blank = text
            return
        if before_calls and text[-1] == "\n":
            kept = len(text) - min(len(text) - len(text.rstrip("\n")), self._lead)
            text, self.blank, end = text[:kept], text[kept:], end - (len(text) - kept)
        self._emit.text("text", text, end)

    def think(self, text: str, end: int) -> None:
        """Reasoning."""
        text = self._begun(text)
        if not text:
            return
        self._catch_up("reasoning", end - len(text))
        text, self.end = self.blank + text, end
        newlines = len(text) - len(text.rstrip(self._trimmed))
        kept = len(text) - min(newlines, MAX_BLANK)
        self.blank = text[kept:]
        self._emit.text("reasoning", text[:kept], end - len(self.blank))

    def _catch_up(self, kind: Literal["text", "reasoning"], start: int) -> None:
        """Give out what waits where a marker that is no text stands between it and `start`."""
        if self.blank and self.end != start:
            self._emit.text(kind, self.blank, self.end)
            self.blank = ""

    def _begun(self, text: str) -> str:
        if self.trims:
            text = text.lstrip(self._trimmed)
            self.trims = not text
        return text
