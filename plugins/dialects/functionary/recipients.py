"""Finds the lines that say whom a message of Functionary v3.2 is for: `>>>RECIPIENT`. Stateless."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, final

__all__ = ("ALL", "NOBODY", "Recipients")

ALL: Final = "all"
"""The user."""
NOBODY: Final = ""
NAME: Final = r"[\w.\-]"
LINE: Final = re.compile(rf">>>({NAME}{{1,64}})\n")
FIRST_LINE: Final = re.compile(rf"(?:>>>)?({NAME}{{1,64}})\n")
"""At the head of an answer: the prompt ends with the marker."""
PART: Final = re.compile(rf">{{1,2}}|>>>{NAME}{{0,64}}")
FIRST_PART: Final = re.compile(rf">{{0,2}}|(?:>>>)?{NAME}{{0,64}}")


@final
class Recipients:
    """Knows the tools that there are: text like `>>>x` is common in code, and names no other."""

    __slots__ = ("_names",)

    def __init__(self, names: Collection[str] | None) -> None:
        """`names`: of the tools; None where any name may be one's."""
        self._names = None if names is None else frozenset((ALL, *names))

    def first(self, text: str, *, is_final: bool) -> tuple[int, str]:
        """At the head of an answer: the index behind its line, and whom it names; (-1, NOBODY)
        where more text could make one; (0, NOBODY) where there is none."""
        line = FIRST_LINE.match(text)
        if line is not None and self._is_one(line[1]):
            return line.end(), line[1]
        return (-1 if not is_final and FIRST_PART.fullmatch(text) else 0), NOBODY

    def find(self, text: str, start: int, *, is_final: bool) -> tuple[int, int, str]:
        """Where the next line stands, the index behind it, and whom it names. Without one: where
        the beginning of one stands (or the text's end), twice, and NOBODY."""
        at = text.find(">", start)
        while at >= 0:
            line = LINE.match(text, at)
            if line is not None and self._is_one(line[1]):
                return at, line.end(), line[1]
            if not is_final and PART.fullmatch(text, at):
                return at, at, NOBODY
            at = text.find(">", at + 1)
        return len(text), len(text), NOBODY

    def _is_one(self, name: str) -> bool:
        return self._names is None or name in self._names
