"""What JSON writes for a Python number, constant or bare word. Stateless."""

from __future__ import annotations

import json
import math
import re
from typing import Final

__all__ = ("NUMBER", "PREFIXES", "scalar")

NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""
CONSTANTS: Final = {
    "True": "true", "False": "false", "None": "null",
    "true": "true", "false": "false", "null": "null",
}  # fmt: skip
PREFIXES: Final = frozenset({"r", "u", "b", "f", "rb", "br", "rf", "fr"})
"""Of strings, in lower case."""


def scalar(word: str) -> str:
    """A number that JSON has stays as it was written; one that only Python has is the same number
    (0x10, 1_000, .5); anything else is a string of the word (so are infinities, which JSON lacks).
    """
    if word in CONSTANTS:
        return CONSTANTS[word]
    if NUMBER.fullmatch(word):
        return word
    number = _number(word) if word[0] in "+-.0123456789" else None
    return json.dumps(word, ensure_ascii=False) if number is None else number


def _number(word: str) -> str | None:
    try:
        return str(int(word, 0))
    except ValueError:
        pass
    try:
        value = float(word)
    except ValueError:
        return None
    return repr(value) if math.isfinite(value) else None
