"""Judges a tool call that begins inside open reasoning. Stateless: it is asked about held text.

The rule: a call counts when nothing but calls and white space follows it up to the answer's end and
the reasoning was never closed. It is a draft, inert and part of the reasoning, as soon as the
closing marker or any other text comes. Both need text that has not come yet, so the text from the
call's marker on is held, up to MAX_HELD characters; a longer call counts, for a model that forgets
to close its reasoning loses the whole answer otherwise, and drafts of such length are rare.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from tokenwire.plugins.dialects._shared.json_stream import JsonCursor
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL, Tags

__all__ = ("MAX_HELD", "Verdict", "judge")

MAX_HELD: Final = 4096
IGNORED: Final = " \t\r\n,[]}"


class Verdict(Enum):
    """`judge`'s answer; a draft is given out up to the index that comes with it."""

    OPEN = "open"
    DRAFT = "draft"
    CALL = "call"


def judge(held: str, start: str, end: str, close: str) -> tuple[Verdict, int]:
    """`held` begins with the marker `start`; `end` ends a call and `close` ends reasoning."""
    limit = held[:MAX_HELD]
    closed = limit.find(close)
    text = limit if closed < 0 else limit[:closed]
    stop = _first_other(text, start, end)
    if stop is not None:
        return Verdict.DRAFT, stop
    if closed >= 0:
        return Verdict.DRAFT, closed
    return (Verdict.CALL if len(held) > MAX_HELD else Verdict.OPEN), len(held)


def _first_other(text: str, start: str, end: str) -> int | None:
    """Where in `text` something stands that is neither call nor white space; None: nowhere yet."""
    tags = Tags((start, end))
    at = len(start)
    while at < len(text):
        if text[at] == "{":
            at = _object_end(text, at, tags)
        elif text[at] in IGNORED:
            at += 1
        else:
            marker = tags.at(text, at)
            if marker == NO_MARKER:
                return at
            at = len(text) if marker == PARTIAL else at + len(marker)
    return None


def _object_end(text: str, at: int, tags: Tags) -> int:
    """Behind the object, or at the marker that breaks it off."""
    cursor = JsonCursor()
    while True:
        at = cursor.feed(text, at)
        if cursor.is_over or at >= len(text) or tags.at(text, at) != NO_MARKER:
            return at
        at += 1
