"""Turns one Python literal, as it comes in pieces, into JSON text. Knows no calls and no schema.

Strings lose their Python escapes and get JSON's; True, False and None become JSON's; tuples become
arrays; numbers stay as they were written where JSON has them. A word that is no literal is given as
the string of what was written. Nothing is repaired: what no literal has there is `is_broken`.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final

from msgspec import Struct

from tokenwire.plugins.dialects._shared.python_scalar import NUMBER, PREFIXES, scalar
from tokenwire.plugins.dialects._shared.python_string import PythonString, StringState

__all__ = ("MAX_WORD", "PythonValue", "ValueState")

Place: TypeAlias = Literal["value", "first", "word", "string", "after"]
"""`first`: behind an opening bracket, where it may be closed at once."""

BLANK: Final = " \t\r\n"
OPEN: Final = {"[": "[", "(": "[", "{": "{"}
CLOSED: Final = {"[": ("]", "]"), "(": (")", "]"), "{": ("}", "}")}
"""By opening bracket: the closing one, and what JSON writes for it."""
WORD_END: Final = re.compile(r"""[\s,:()\[\]{}"'=<]""")
MAX_WORD: Final = 4300
"""Characters of a number or word; as many digits as Python reads."""
MAX_DEPTH: Final = 128


class ValueState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    stack: str
    word: str
    is_key: bool
    wants_comma: bool
    is_over: bool
    string: StringState | None


@final
class PythonValue:
    """`feed` it text from the value's first character on, until `is_over` or `is_broken`.

    `is_lax`: a quote closes a string only before a comma, colon, bracket or the end, for models
    that were trained on strings in which quotes are not escaped.
    """

    __slots__ = (
        "_is_key", "_is_lax", "_place", "_stack", "_string", "_wants_comma", "_word", "is_broken",
        "is_over",
    )  # fmt: skip

    def __init__(self, *, is_lax: bool = False) -> None:
        self._is_lax = is_lax
        self._place: Place = "value"
        self._stack = ""
        self._word = ""
        self._is_key = False
        self._wants_comma = False
        self._string: PythonString | None = None
        self.is_over = False
        self.is_broken = False

    @property
    def plain_until(self) -> str:
        """Text with none of these characters is given as it is; "" where all has to be read."""
        return "" if self._string is None else self._string.plain_until

    def feed(self, text: str, at: int) -> tuple[int, str]:
        """Where it stopped, and the JSON that became certain: behind a string or bracket that ends
        the value, at the character behind a number or word, at what breaks it, or at the end."""
        out: list[str] = []
        while at < len(text) and not (self.is_over or self.is_broken):
            if self._place == "string":
                at = self._in_string(text, at, out)
            elif self._place == "word":
                at = self._in_word(text, at, out)
            elif text[at] in BLANK:
                at += 1
            elif self._place == "after":
                at = self._after(text, at, out)
            else:
                at = self._begin(text, at, out)
        return at, "".join(out)

    def finish(self) -> str:
        """The text ends here: what of it is certain, which of words are the beginnings of numbers
        (but for zero, with which hexadecimal ones begin)."""
        if self._place == "word" and NUMBER.fullmatch(self._word) and self._word.strip("-0"):
            return self._lead() + self._word
        return ""

    def _lead(self) -> str:
        lead = ", " if self._wants_comma else ""
        self._wants_comma = False
        return lead

    def _begin(self, text: str, at: int, out: list[str]) -> int:
        character = text[at]
        if character in "\"'":
            self._begin_string(character, out)
        elif character in OPEN:
            if self._is_key or len(self._stack) >= MAX_DEPTH:
                self.is_broken = True
                return at
            out.append(self._lead() + OPEN[character])
            self._stack += character
            self._place, self._is_key = "first", character == "{"
        elif self._stack and character == CLOSED[self._stack[-1]][0]:
            # Why: Python lets a comma stand before it.
            if self._place != "first" and not self._wants_comma:
                self.is_broken = True
                return at
            self._close(out)
        elif WORD_END.match(character):
            self.is_broken = True
            return at
        else:
            self._place, self._word = "word", character
        return at + 1

    def _begin_string(self, quote: str, out: list[str], prefix: str = "") -> None:
        out.append(self._lead() + '"')
        self._string = PythonString(quote, is_raw="r" in prefix, is_lax=self._is_lax)
        self._place, self._word = "string", ""

    def _in_word(self, text: str, at: int, out: list[str]) -> int:
        found = WORD_END.search(text, at)
        end = found.start() if found else len(text)
        if len(self._word) + end - at > MAX_WORD:
            self.is_broken = True
            return at + MAX_WORD - len(self._word)
        self._word += text[at:end]
        if found is None:
            return end
        if text[end] in "\"'" and self._word.lower() in PREFIXES:
            self._begin_string(text[end], out, self._word.lower())
            return end + 1
        if text[end] in "\"'=([{":
            self.is_broken = True
            return end
        json_text = scalar(self._word)
        if self._is_key and not json_text.startswith('"'):
            json_text = f'"{json_text}"'
        out.append(self._lead() + json_text)
        self._end_value()
        return end

    def _in_string(self, text: str, at: int, out: list[str]) -> int:
        string = self._string
        assert string is not None
        at, json_text = string.feed(text, at)
        out.append(json_text)
        if string.is_over:
            out.append('"')
            self._string = None
            self._end_value()
        return at

    def _end_value(self) -> None:
        self._place, self._word = "after", ""
        self.is_over = not self._stack

    def _close(self, out: list[str]) -> None:
        out.append(CLOSED[self._stack[-1]][1])
        self._stack = self._stack[:-1]
        self._is_key = self._wants_comma = False
        self._end_value()

    def _after(self, text: str, at: int, out: list[str]) -> int:
        character, bracket = text[at], self._stack[-1]
        if self._is_key:
            if character != ":":
                self.is_broken = True
                return at
            out.append(": ")
            self._place, self._is_key = "value", False
        elif character == ",":
            self._place, self._wants_comma, self._is_key = "value", True, bracket == "{"
        elif character == CLOSED[bracket][0]:
            self._close(out)
        else:
            self.is_broken = True
            return at
        return at + 1

    def save(self) -> ValueState:
        string = None if self._string is None else self._string.save()
        return ValueState(
            self._place, self._stack, self._word, self._is_key, self._wants_comma, self.is_over,
            string,
        )  # fmt: skip

    def restore(self, state: ValueState) -> None:
        self._place, self._stack, self._word = state.place, state.stack, state.word
        self._is_key, self._wants_comma = state.is_key, state.wants_comma
        self.is_over = state.is_over
        self._string = None
        if state.string is not None:
            self._string = PythonString.restored(state.string, is_lax=self._is_lax)
