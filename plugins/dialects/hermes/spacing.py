"""White space next to markers: what belongs to the marker is dropped, everything else is kept.

Text that is only white space waits, for it is no text if a call follows. One newline before a call
belongs to the call; in reasoning, the run of newlines before the closing marker belongs to that.
"""

from __future__ import annotations

from typing import Final, final

from tokenwire.plugins.dialects._shared.emitter import Emitter

__all__ = ("MAX_BLANK", "Spacing")

MAX_BLANK: Final = 256
"""Characters of white space that are held."""


@final
class Spacing:
    """`blank` is what waits; while `trims`, newlines still belong to the marker before them."""

    __slots__ = ("_emit", "blank", "trims")

    def __init__(self, emit: Emitter, *, trims: bool) -> None:
        self._emit = emit
        self.blank = ""
        self.trims = trims

    def begin(self) -> None:
        """Behind a marker."""
        self.blank, self.trims = "", True

    def say(self, text: str, end: int, *, can_wait: bool, before_calls: bool) -> None:
        """Visible text. `can_wait`: white space may yet turn out to be none."""
        text = self._trimmed(text)
        if not text:
            return
        text, self.blank = self.blank + text, ""
        if can_wait and text.isspace() and len(text) <= MAX_BLANK:
            self.blank = text
            return
        if before_calls and text[-1] == "\n":
            text, self.blank, end = text[:-1], "\n", end - 1
        self._emit.text("text", text, end)

    def think(self, text: str, end: int) -> None:
        """Reasoning."""
        text = self._trimmed(text)
        if not text:
            return
        text = self.blank + text
        newlines = len(text) - len(text.rstrip("\n"))
        kept = len(text) - min(newlines, MAX_BLANK)
        self.blank = text[kept:]
        self._emit.text("reasoning", text[:kept], end - len(self.blank))

    def _trimmed(self, text: str) -> str:
        if self.trims:
            text = text.lstrip("\n")
            self.trims = not text
        return text
