"""Finds markers in text that comes in pieces; holds back what may be the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, final

__all__ = ("NO_MARKER", "PARTIAL", "Tags")

NO_MARKER: Final = ""
PARTIAL: Final = "partial"
NEVER: Final = r"(?!)"


@final
class Tags:
    """Markers, each of any first character that is visible. Stateless: whoever asks keeps the text.

    Where one marker is the beginning of another, the longer one is waited for, so that what is
    found does not depend on how the text was cut.
    """

    __slots__ = ("_certain", "_final", "_longer", "_only", "_whole", "firsts", "markers")

    def __init__(self, markers: Sequence[str]) -> None:
        self.markers = tuple(dict.fromkeys(markers))
        assert all(marker and not marker[0].isspace() for marker in self.markers)
        self.firsts = "".join(sorted({marker[0] for marker in self.markers}))
        self._only = self.firsts if len(self.firsts) == 1 else ""
        self._whole = frozenset(self.markers)
        beginnings = {marker[:n] for marker in self.markers for n in range(1, len(marker))}
        self._longer = frozenset(text for text in beginnings if text.startswith(self.markers))
        self._final = _pattern((), self._whole)
        # Why in this order: what may become a longer marker is no shorter one yet.
        self._certain = _pattern(self._longer, self._whole, beginnings - self._longer)

    def at(self, text: str, start: int, *, is_final: bool = False) -> str:
        """The marker that stands at `start`; PARTIAL where more text could make one (never with
        `is_final`); NO_MARKER otherwise."""
        if is_final:
            found = self._final.match(text, start)
            return found.group() if found else NO_MARKER
        found = self._certain.match(text, start)
        return self._name(found, len(text)) if found else NO_MARKER

    def find(self, text: str, start: int, *, is_final: bool = False) -> tuple[int, str]:
        """Where the first marker at or after `start` stands, and which; (len(text), NO_MARKER) for
        none, and (index, PARTIAL) for a beginning of one at the end."""
        if self._only and self._only not in text:
            return len(text), NO_MARKER
        found = (self._final if is_final else self._certain).search(text, start)
        if found is None:
            return len(text), NO_MARKER
        return found.start(), found.group() if is_final else self._name(found, len(text))

    def _name(self, found: re.Match[str], end: int) -> str:
        text = found.group()
        is_whole = text in self._whole and not (found.end() == end and text in self._longer)
        return text if is_whole else PARTIAL

    def without(self, markers: Collection[str]) -> Tags:
        return Tags([marker for marker in self.markers if marker not in markers])


def _pattern(
    longer: Collection[str], whole: Collection[str] = (), beginnings: Collection[str] = ()
) -> re.Pattern[str]:
    """`longer` and `beginnings` at the text's end only, `whole` anywhere."""
    ways = [*_sorted(longer, r"\Z"), *_sorted(whole, ""), *_sorted(beginnings, r"\Z")]
    return re.compile("|".join(ways) or NEVER)


def _sorted(texts: Collection[str], behind: str) -> Iterator[str]:
    """Patterns of them, the longest first."""
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        yield re.escape(text) + behind
