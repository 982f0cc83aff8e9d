"""Turns a bare argument value, as it comes, into JSON by the types that the tool's schema allows.

The rule: what is written as valid JSON of an allowed type other than string is that value, as it
was written; everything else is a JSON string of exactly that text. So a string parameter is never
changed ("007" stays "007"), a value that does not fit is kept as text, and `null` is null only
where null is allowed. A parameter that has no type, or that the tool does not have, allows every
type. Text goes out while it comes, as soon as it can only be a string. Knows no markup.
"""

from __future__ import annotations

import ast
import json
import re
from json.encoder import encode_basestring
from typing import Final, final

from msgspec import Struct

from tokenwire.plugins.dialects._shared.schema import Kinds

__all__ = ("ESCAPED", "TypedValue", "ValueState", "quoted")

ESCAPED: Final = "".join(map(chr, range(32))) + '"\\'
"""Characters that stand otherwise in a JSON string."""
BLANK: Final = " \t\r\n"
MAX_BLANK: Final = 64
"""White space held at a value's beginning while its type is not known."""
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?")
NUMBER_BEGUN: Final = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?"
)
WORDS: Final = {"true": "boolean", "false": "boolean", "null": "null"}
PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
MAX_LITERAL: Final = 65_536
"""Characters of a Python literal that are looked at."""


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


# Why str: only the shape is looked at, and a number no double holds is as good as any.
DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def quoted(text: str) -> str:
    """A JSON string; what is beyond ASCII is written as it is."""
    return encode_basestring(text)


class ValueState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    held: str
    is_string: bool


@final
class TypedValue:
    """`push` and `end` give JSON text; `is_string` says that text goes out as it comes.

    `python`: for templates that write values as Python prints them: True, False, None, and lists
    and dictionaries as literals are read too where JSON does not fit.
    """

    __slots__ = ("_held", "_kinds", "_python", "is_string")

    def __init__(self, kinds: Kinds, *, python: bool = False) -> None:
        self._kinds = kinds
        self._python = python
        self._held = ""
        self.is_string = False

    def push(self, text: str) -> str:
        if self.is_string:
            return encode_basestring(text)[1:-1]
        is_nested = self._held[:1] in ("{", "[")
        held = self._held = self._held + text
        if is_nested or self._may_be_other(held):
            return ""
        self._held, self.is_string = "", True
        return encode_basestring(held)[:-1]

    def end(self) -> str:
        """The value is over: the rest."""
        if self.is_string:
            return '"'
        return self._other(self._held.strip(BLANK)) or encode_basestring(self._held)

    def stop(self) -> str:
        """The answer ends inside the value: what is left of it, unclosed. "" where more text could
        have made something else of it."""
        text = self._held.strip(BLANK)
        if self.is_string or "string" in self._kinds:
            return ""
        if self._python and ("'" in text or any(word[0] in text for word in PYTHON_WORDS)):
            return ""
        return text

    def _may_be_other(self, held: str) -> bool:
        kinds = self._kinds
        if len(kinds) == 1 and "string" in kinds:
            return False
        text = held.strip(BLANK)
        if not text:
            return len(held) <= MAX_BLANK
        match text[0]:
            case "{":
                return "object" in kinds
            case "[" | "(" if text[0] == "[" or self._python:
                return "array" in kinds
            case "-" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                begun = NUMBER_BEGUN.fullmatch(text) is not None
                return begun and ("number" in kinds or "integer" in kinds)
        words = (*WORDS, *PYTHON_WORDS) if self._python else tuple(WORDS)
        return any(
            word.startswith(text) and WORDS[PYTHON_WORDS.get(word, word)] in kinds for word in words
        )

    def _other(self, text: str) -> str:
        """`text` as JSON of an allowed type other than string; "" if it is none."""
        if not text:
            return ""
        kinds = self._kinds
        word = PYTHON_WORDS.get(text, text) if self._python else text
        if word in WORDS:
            return word if WORDS[word] in kinds else ""
        if text[0] in "-0123456789":
            number = "number" in kinds and NUMBER.fullmatch(text)
            whole = "integer" in kinds and WHOLE.fullmatch(text)
            return text if number or whole else ""
        if not ((text[0] == "{" and "object" in kinds) or (text[0] in "[(" and "array" in kinds)):
            return ""
        if _is_json(text):
            return text
        return _of_literal(text) if self._python else ""

    def save(self) -> ValueState:
        return ValueState(self._held, self.is_string)

    def restore(self, state: ValueState) -> None:
        self._held, self.is_string = state.held, state.is_string


def _is_json(text: str) -> bool:
    try:
        DECODER.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_literal(text: str) -> str:
    """A Python list, tuple or dictionary as JSON; "" for anything that is not exactly that."""
    if len(text) > MAX_LITERAL:
        return ""
    try:
        value = ast.literal_eval(text)
        if not isinstance(value, (dict, list, tuple)):
            return ""
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""
