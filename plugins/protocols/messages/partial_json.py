"""What a cut-off JSON text holds for certain: its whole members, and nothing invented. Pure.

The same rule as the official SDK's accumulator, which reads a call's arguments piece by piece: an
unfinished string, literal or key is left out; a container that is open keeps what it has.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ("whole_members",)

# One token with the white space before it. A string or number that is cut does not match.
TOKEN: Final = re.compile(
    r"[ \t\n\r]*(?:"
    r'(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.eE+-])"
    r"|true\b|false\b|null\b)"
    r"|(?P<mark>[][{}:,]))"
)
CLOSING: Final = {"{": "}", "[": "]"}


def whole_members(text: str) -> str:
    """JSON text of what `text` holds up to where it is cut, or stops being JSON; "{}" at least."""
    at = 0
    good = 0  # Where the last whole member ends, closing marks aside.
    closers = good_closers = ""
    state = "value"  # What may come: value, first (or the end), key, first_key, colon, comma.
    while (match := TOKEN.match(text, at)) is not None:
        at = match.end()
        mark = match["mark"]
        if mark is None:
            if state in ("key", "first_key") and match["string"]:
                state = "colon"
                continue
            if state not in ("value", "first"):
                break
            state, good, good_closers = "comma", at, closers
        elif mark in CLOSING and state in ("value", "first"):
            closers = CLOSING[mark] + closers
            state, good, good_closers = "first_key" if mark == "{" else "first", at, closers
        elif mark in "}]" and mark == closers[:1] and state in ("comma", "first", "first_key"):
            closers = closers[1:]
            state, good, good_closers = "comma", at, closers
        elif mark == ":" and state == "colon":
            state = "value"
        elif mark == "," and state == "comma" and closers:
            state = "key" if closers[0] == "}" else "value"
        else:
            break
        if state == "comma" and not closers:
            break
    return text[:good] + good_closers if good else "{}"
