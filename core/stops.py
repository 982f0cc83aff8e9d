"""Stop strings in visible text: finds them across any cutting and never lets a part of one out.

Knows only text: the decoder decides which text is visible.
"""

from __future__ import annotations

from typing import final

from msgspec import Struct

__all__ = ("StopResult", "StopStrings")


class StopResult(Struct, frozen=True, gc=False):
    """`text` may go out now. `matched`: the stop string that was found behind it, if one was."""

    text: str
    matched: str | None = None


@final
class StopStrings:
    """The string that is complete first wins (of two ending together, the longer).

    Held back is the longest end of the text that some stop string begins with, and no more.
    """

    __slots__ = ("_firsts", "_held", "_include", "_longest", "_stops")

    def __init__(self, stops: tuple[str, ...], *, include: bool = False) -> None:
        """`stops` are not empty strings; `include` leaves the match in the text."""
        self._stops = stops
        self._firsts = frozenset(stop[0] for stop in stops)
        self._longest = max(map(len, stops), default=0)
        self._include = include
        self._held = ""

    @property
    def held(self) -> str:
        return self._held

    def push(self, text: str) -> StopResult:
        text = self._held + text
        end, start = min(
            ((at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0),
            default=(-1, -1),
        )
        if end >= 0:
            self._held = ""
            return StopResult(text[: end if self._include else start], text[start:end])
        keep = self._begin(text)
        self._held = text[keep:]
        return StopResult(text[:keep])

    def flush(self) -> str:
        """The part is over: what was held was no stop string."""
        held, self._held = self._held, ""
        return held

    def restore(self, held: str) -> None:
        self._held = held

    def _begin(self, text: str) -> int:
        """Where the longest end of `text` begins that a stop string may still grow from."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[at] in self._firsts:
                end = text[at:]
                if any(stop.startswith(end) for stop in self._stops):
                    return at
        return len(text)
