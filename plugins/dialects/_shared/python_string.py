"""Turns a Python string literal, from behind its opening quote, into the inside of a JSON string.

Three quotes, raw strings and all of Python's escapes but \\N are known; an escape that Python does
not know stays as it stands, as in Python. Knows nothing of what stands around a string.
"""

from __future__ import annotations

import json
import re
from typing import Final, final

from msgspec import Struct

__all__ = ("PythonString", "StringState")

SHORT: Final = {
    "\\": "\\\\", "'": "'", '"': '\\"', "n": "\\n", "t": "\\t", "r": "\\r", "b": "\\b",
    "f": "\\f", "a": "\\u0007", "v": "\\u000b", "\n": "",
}  # fmt: skip
"""By the character behind a backslash: what JSON writes."""
HEX: Final = {"x": 2, "u": 4, "U": 8}
"""By the character behind a backslash: how many digits follow."""
STOPS: Final = {"'": re.compile(r"[\\']"), '"': re.compile(r'[\\"]')}
CONTROLS: Final = "".join(map(chr, range(32)))
UNLIKE: Final = {"'": f"'\"\\{CONTROLS}", '"': f'"\\{CONTROLS}'}
"""By the kind of quote: the characters that JSON writes otherwise, or that end the string."""
OCTAL: Final = "01234567"
CLOSERS: Final = ",:)]}"
"""What may stand behind a string: a comma, a colon, a closing bracket."""
MAX_GAP: Final = 64
"""White space behind a quote that is held until it is known whether the quote ends the string."""


class StringState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    quote: str
    is_raw: bool
    opening: int
    escape: str
    gap: str


@final
class PythonString:
    """`feed` it text until `is_over`."""

    __slots__ = ("_escape", "_gap", "_is_lax", "_is_raw", "_opening", "_quote", "is_over")

    def __init__(self, quote: str, *, is_raw: bool, is_lax: bool) -> None:
        self._is_lax = is_lax
        self._is_raw = is_raw
        self._opening = 1  # quotes that came, while they may still become three; then 0
        self._escape = ""  # a backslash and what came of its escape
        self._gap = ""  # quotes that may end the string, and white space behind them
        self._quote = quote
        self.is_over = False

    @property
    def plain_until(self) -> str:
        """Text with none of these characters is the same in JSON; "" where all have to be read."""
        return "" if self._opening or self._escape or self._gap else UNLIKE[self._quote[0]]

    def feed(self, text: str, at: int) -> tuple[int, str]:
        """Where it stopped, and the JSON that became certain."""
        out: list[str] = []
        while at < len(text) and not self.is_over:
            if self._opening:
                at = self._open(text, at)
            elif self._gap:
                at = self._after_quote(text, at, out)
            elif self._escape:
                at = self._in_escape(text, at, out)
            else:
                at = self._plain(text, at, out)
        return at, "".join(out)

    def _open(self, text: str, at: int) -> int:
        if text[at] == self._quote:
            self._opening += 1
            if self._opening == 3:
                self._quote *= 3
                self._opening = 0
            return at + 1
        if self._opening == 2:
            # Two quotes are the empty string; the character behind them was no third.
            self.is_over = True
        self._opening = 0
        return at

    def _plain(self, text: str, at: int, out: list[str]) -> int:
        found = STOPS[self._quote[0]].search(text, at)
        end = found.start() if found else len(text)
        out.append(_inside(text[at:end]))
        if found is None:
            return end
        if text[end] == "\\":
            self._escape = "\\"
        else:
            self._gap = text[end]
            if not self._is_lax and len(self._quote) == 1:
                self.is_over = True
        return end + 1

    def _after_quote(self, text: str, at: int, out: list[str]) -> int:
        """Behind a quote that may not be the end: of three, or one that nobody escaped."""
        character = text[at]
        if len(self._quote) == 3:
            if character != self._quote[0]:
                out.append(_inside(self._gap))
                self._gap = ""
                return at
            self._gap += character
            if self._gap == self._quote:
                self._gap, self.is_over = "", True
            return at + 1
        if character in CLOSERS or len(self._gap) > MAX_GAP:
            self._gap, self.is_over = "", True
            return at
        if character.isspace():
            self._gap += character
            return at + 1
        out.append(_inside(self._gap))
        self._gap = ""
        return at

    def _in_escape(self, text: str, at: int, out: list[str]) -> int:
        character, escape = text[at], self._escape
        if len(escape) == 1:
            if self._is_raw:
                out.append(_inside(escape + character))
                self._escape = ""
            elif character in SHORT:
                out.append(SHORT[character])
                self._escape = ""
            elif character in HEX or character in OCTAL:
                self._escape += character
            else:
                out.append(_inside(escape + character))
                self._escape = ""
            return at + 1
        if escape[1] in OCTAL:
            if character in OCTAL and len(escape) < 4:
                self._escape += character
                return at + 1
            out.append(_inside(chr(int(escape[1:], 8))))
            self._escape = ""
            return at
        return self._in_hex(character, at, out)

    def _in_hex(self, character: str, at: int, out: list[str]) -> int:
        if character not in "0123456789abcdefABCDEF":
            out.append(_inside(self._escape))
            self._escape = ""
            return at
        self._escape += character
        escape = self._escape
        if len(escape) == 2 + HEX[escape[1]]:
            code = int(escape[2:], 16)
            if escape[1] == "u":
                out.append(escape)  # Why as written: halves of a pair come one by one.
            else:
                is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
                out.append(_inside(chr(code) if is_character else escape))
            self._escape = ""
        return at + 1

    def save(self) -> StringState:
        return StringState(self._quote, self._is_raw, self._opening, self._escape, self._gap)

    @classmethod
    def restored(cls, state: StringState, *, is_lax: bool) -> PythonString:
        string = cls(state.quote, is_raw=state.is_raw, is_lax=is_lax)
        string._opening, string._escape, string._gap = state.opening, state.escape, state.gap
        return string


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
