"""Turns Gemma's arguments, `{key:value,...}` with strings in a quote of its own, into JSON.

Text goes out while it comes, except for a key and a bare word, which are held to their end. Strings
are told by their quote, so that a bare number, true, false or null (Python's words too) is what it
says, but for a number where the schema allows no number; any other bare word is a string. Knows no
markers but the quote and the call's end.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Final, Literal, TypeAlias, final

from tokenwire.plugins.dialects._shared.json_stream import string_text
from tokenwire.plugins.dialects._shared.schema import Schema
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL, Tags
from tokenwire.plugins.dialects._shared.typed_value import ESCAPED
from tokenwire.plugins.dialects.gemma.state import ArgumentsState, Bracket, Place

__all__ = ("Arguments", "Progress")

Progress: TypeAlias = Literal["more", "over", "broken"]
BLANK: Final = " \t\r\n"
MAX_WORD: Final = 65_536
"""Characters of a key or a bare word."""
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
WORDS: Final = {
    "true": "true", "false": "false", "null": "null",
    "True": "true", "False": "false", "None": "null",
}  # fmt: skip
KEY_END: Final = re.compile(r"[:,{}\[\]]")
WORD_END: Final = re.compile(r"[,{}\[\]<]")
STOPS: Final = f"<{ESCAPED}"
JSON_STOP: Final = re.compile(r'["\\]')
CLOSERS: Final = {"{": "}", "[": "]"}


@final
class Arguments:
    """`feed` it from the first `{` on."""

    __slots__ = (
        "_is_escaped", "_is_first", "_is_key", "_marks", "_out", "_path", "_place", "_quote",
        "_schema", "_tail", "_word",
    )  # fmt: skip

    def __init__(self, quote: str, end: str, schema: Schema) -> None:
        self._quote = quote
        self._marks = Tags((quote, end))
        self._schema = schema
        self._place: Place = "value"
        self._path: list[tuple[Bracket, str]] = []
        self._word = ""
        self._tail = ""  # of a string: text if more comes
        self._is_key = False  # whether the string that is being read is a key
        self._is_first = True  # in its bracket
        self._is_escaped = False
        self._out: list[str] = []

    @property
    def is_over(self) -> bool:
        return self._place == "over"

    @property
    def plain_until(self) -> str:
        """As CallReader's: in a string, what ends it or stands otherwise in JSON."""
        is_string = self._place == "string" and not (self._is_key or self._tail)
        return STOPS if is_string else ""

    def take(self) -> str:
        """JSON that came since the last time."""
        text = "".join(self._out)
        self._out.clear()
        return text

    def feed(self, text: str, at: int, *, is_final: bool) -> tuple[int, Progress]:
        """The index where it stopped: behind the last bracket, at what is no argument, or at what
        needs more text."""
        while at < len(text):
            before = at
            match self._place:
                case "string":
                    at = self._in_string(text, at, is_final)
                case "json":
                    at = self._in_json(text, at)
                case "word":
                    at = self._in_word(text, at, is_final)
                case _:
                    at = self._between(text, at, is_final)
            if self._place == "over":
                return at, "over"
            if at < 0:
                return before, "broken"
            if len(self._word) > MAX_WORD:
                return at, "broken"
            if at == before and self._waits(text, at, is_final):
                return at, "more"
        return at, "more"

    def _waits(self, text: str, at: int, is_final: bool) -> bool:
        return self._marks.at(text, at, is_final=is_final) == PARTIAL

    def _between(self, text: str, at: int, is_final: bool) -> int:
        """Outside strings and words; -1 for what cannot stand there."""
        character = text[at]
        if character in BLANK:
            return at + 1
        if self._place == "colon":
            if character != ":":
                return -1
            self._place = "value"
            self._out.append(":")
            return at + 1
        if self._place == "next":
            return self._next(character, at)
        if character in "}]":
            is_missing = self._place == "value" and self._path and self._path[-1][0] == "{"
            return -1 if is_missing else self._close(character, at)
        return self._begin(text, at, is_final)

    def _next(self, character: str, at: int) -> int:
        if character != ",":
            return self._close(character, at)
        self._place = "key" if self._path[-1][0] == "{" else "value"
        return at + 1

    def _close(self, character: str, at: int) -> int:
        if not self._path or CLOSERS[self._path[-1][0]] != character:
            return -1
        self._path.pop()
        self._out.append(character)
        self._end_value()
        return at + 1

    def _end_value(self) -> None:
        self._is_first = False
        self._place = "next" if self._path else "over"

    def _begin(self, text: str, at: int, is_final: bool) -> int:
        """A key, or a value."""
        character = text[at]
        is_key = self._place == "key"
        if character == "{" or (character == "[" and self._path):
            if is_key:
                return -1
            self._comma()
            self._path.append(("{" if character == "{" else "[", ""))
            self._out.append(character)
            self._is_first = True
            self._place = "key" if character == "{" else "value"
            return at + 1
        if character in ":,[" or not self._path:
            return -1
        mark = self._marks.at(text, at, is_final=is_final)
        if mark == PARTIAL:
            return at
        if mark not in (NO_MARKER, self._quote):
            return -1
        self._comma()
        self._is_key = is_key
        self._word = ""
        if mark == self._quote or character == '"':
            self._place = "string" if mark else "json"
            self._say('"')
            return at + len(mark or character)
        self._place = "word"
        return at

    def _comma(self) -> None:
        """Before a key or an item that is not the first."""
        is_item = self._place == "key" or (self._path and self._path[-1][0] == "[")
        if is_item and not self._is_first:
            self._out.append(",")

    def _say(self, text: str) -> None:
        """Of a string: out, or to the key."""
        if self._is_key:
            self._word += text
        else:
            self._out.append(text)

    def _in_string(self, text: str, at: int, is_final: bool) -> int:
        if self._tail:
            self._say(encode_basestring(self._tail)[1:-1])
            self._tail = ""
        found = text.find("<", at)
        if found == at:
            mark = self._marks.at(text, at)
            if mark == PARTIAL:
                # Why kept: at the answer's end it is a quote that was cut, and no text.
                self._tail = text[at:] if is_final else ""
                return len(text) if is_final else at
            if mark == self._quote:
                self._say('"')
                self._end_string()
                return at + len(mark)
            found = text.find("<", at + 1)
        end = len(text) if found < 0 else found
        self._say(encode_basestring(text[at:end])[1:-1])
        return end

    def _in_json(self, text: str, at: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            self._say(text[at])
            return at + 1
        found = JSON_STOP.search(text, at)
        end = len(text) if found is None else found.end()
        # Why: a raw line break in a string is no JSON, and models write it.
        self._say(text[at:end].replace("\n", "\\n"))
        if found is not None and found.group() == '"':
            self._end_string()
        elif found is not None:
            self._is_escaped = True
        return end

    def _end_string(self) -> None:
        if self._is_key:
            self._end_key(string_text(self._word), self._word)
        else:
            self._end_value()

    def _end_key(self, key: str, written: str) -> None:
        self._path[-1] = ("{", key)
        self._out.append(written)
        self._word = ""
        self._place = "colon"

    def _in_word(self, text: str, at: int, is_final: bool) -> int:
        found = (KEY_END if self._is_key else WORD_END).search(text, at)
        end = len(text) if found is None else found.start()
        if end > at or found is None:
            self._word += text[at:end]
            return end
        if text[at] == "<":
            mark = self._marks.at(text, at, is_final=is_final)
            if mark == PARTIAL:
                return at
            if mark:
                return -1
            self._word += "<"
            return at + 1
        if self._is_key:
            if text[at] != ":":
                return -1
            key = self._word.strip()
            self._end_key(key, encode_basestring(key))
            return at
        if text[at] in "{[":
            self._word += text[at]
            return at + 1
        self._out.append(self._value(self._word.strip()))
        self._word = ""
        self._end_value()
        return at

    def _value(self, word: str) -> str:
        if word in WORDS:
            return WORDS[word]
        if NUMBER.fullmatch(word) and self._here().kinds & {"number", "integer"}:
            return word
        return encode_basestring(word)

    def _here(self) -> Schema:
        """Of the value that is being read."""
        schema = self._schema
        for bracket, key in self._path:
            schema = schema.member(key) if bracket == "{" else schema.item()
        return schema

    def save(self) -> ArgumentsState:
        return ArgumentsState(
            self._place, list(self._path), self._word, self._tail, self._is_key, self._is_first,
            self._is_escaped,
        )  # fmt: skip

    def restore(self, state: ArgumentsState) -> None:
        self._place, self._path, self._word = state.place, list(state.path), state.word
        self._tail = state.tail
        self._is_key, self._is_first = state.is_key, state.is_first
        self._is_escaped = state.is_escaped
