"""Finds markers in text that comes in pieces; holds back what may be the beginning of one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, final

__all__ = ("NO_MARKER", "PARTIAL", "Tags")

NO_MARKER: Final = ""
PARTIAL: Final = "partial"


@final
class Tags:
    """Markers that all begin with `<`. Stateless: whoever asks keeps the text."""

    __slots__ = ("markers",)

    def __init__(self, markers: Sequence[str]) -> None:
        assert all(marker[:1] == "<" and len(marker) > 1 for marker in markers)
        self.markers = tuple(markers)

    def at(self, text: str, start: int, *, is_final: bool = False) -> str:
        """The marker that stands at `start`; PARTIAL where more text could make one (never with
        `is_final`); NO_MARKER otherwise."""
        for marker in self.markers:
            if text.startswith(marker, start):
                return marker
        if not is_final:
            left = len(text) - start
            for marker in self.markers:
                if left < len(marker) and marker.startswith(text[start:]):
                    return PARTIAL
        return NO_MARKER

    def find(self, text: str, start: int, *, is_final: bool = False) -> tuple[int, str]:
        """Where the first marker at or after `start` stands, and which; (len(text), NO_MARKER) for
        none, and (index, PARTIAL) for a beginning of one at the end."""
        at = text.find("<", start)
        while at >= 0:
            marker = self.at(text, at, is_final=is_final)
            if marker:
                return at, marker
            at = text.find("<", at + 1)
        return len(text), NO_MARKER

    def without(self, markers: Collection[str]) -> Tags:
        return Tags([marker for marker in self.markers if marker not in markers])
