"""Follows one JSON value through pieces of text and knows where it ends. Repairs nothing.

Lenient: brackets are counted, not matched, so that what a model wrote comes out as it stands.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

__all__ = ("CursorState", "JsonCursor", "string_text")

Kind: TypeAlias = Literal["", '"', "{", "[", "scalar"]

IN_STRING: Final = re.compile(r'["\\]')
IN_NESTED: Final = re.compile(r'["{}\[\]<]')
KINDS: Final[dict[str, Kind]] = {'"': '"', "{": "{", "[": "["}
AFTER_SCALAR: Final = re.compile(r'[\s,:{}\[\]"<]')
LONE: Final = re.compile(r"[\ud800-\udfff]")
"""A surrogate in a string that Python has decoded: pairs are one character there."""


class CursorState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """As msgspec's `convert` gives it back."""

    kind: Kind
    depth: int
    is_escaped: bool
    in_string: bool
    is_over: bool


@final
class JsonCursor:
    """`feed` it text from the value's first character on, until `is_over`."""

    __slots__ = ("_depth", "_kind", "in_string", "is_escaped", "is_over")

    def __init__(self) -> None:
        self._kind: Kind = ""
        self._depth = 0
        self.is_escaped = False
        self.in_string = False
        self.is_over = False

    def feed(self, text: str, at: int) -> int:
        """Where it stopped: behind the value (`is_over`), at a `<` outside strings (which may begin
        a marker; `skip` goes over it), or at the text's end."""
        if not self._kind and at < len(text):
            first = text[at]
            self._kind = KINDS.get(first, "scalar")
            if first == '"':
                self.in_string = True
                at += 1
        while at < len(text):
            if self.in_string:
                at = self._string(text, at)
            elif self._kind == "scalar":
                end = AFTER_SCALAR.search(text, at)
                self.is_over = end is not None and text[end.start()] != "<"
                return end.start() if end else len(text)
            else:
                found = IN_NESTED.search(text, at)
                if found is None:
                    return len(text)
                at = found.start()
                if text[at] == "<":
                    return at
                at = self._bracket(text[at], at)
            if self.is_over:
                return at
        return at

    def _string(self, text: str, at: int) -> int:
        if self.is_escaped:
            self.is_escaped = False
            return at + 1
        found = IN_STRING.search(text, at)
        if found is None:
            return len(text)
        if found.group() == "\\":
            self.is_escaped = True
        else:
            self.in_string = False
            self.is_over = self._kind == '"'
        return found.end()

    def _bracket(self, character: str, at: int) -> int:
        if character == '"':
            self.in_string = True
        elif character in "{[":
            self._depth += 1
        else:
            self._depth -= 1
            self.is_over = self._depth <= 0
        return at + 1

    def save(self) -> CursorState:
        return CursorState(self._kind, self._depth, self.is_escaped, self.in_string, self.is_over)

    def restore(self, state: CursorState) -> None:
        self._kind, self._depth = state.kind, state.depth
        self.is_escaped, self.in_string = state.is_escaped, state.in_string
        self.is_over = state.is_over


def string_text(literal: str) -> str:
    """The text of a JSON string; as it stands between its quotes where it is not quite JSON; "" for
    what no UTF-8 can say (a lone surrogate)."""
    try:
        text = str(json.loads(literal))
    except ValueError:
        text = literal[1:-1]
    return text if LONE.search(text) is None else ""
