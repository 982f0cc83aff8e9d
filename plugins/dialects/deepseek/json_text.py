"""JSON text as DeepSeek prompts show it: `, ` and `: `, no ASCII escapes, numbers of 64 bits.

An integer that 64 bits cannot hold is written as the float nearest to it. The two generations
differ in how they write a float with an exponent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeAlias

__all__ = ("FloatText", "load", "plain_float", "spaced", "v4_float")

FloatText: TypeAlias = Callable[[float], str]

INT_MIN, UINT_MAX = -(2**63), 2**64 - 1
EXPONENT: Final = re.compile(r"\de[+-]?\d")
"""In JSON text that a float may have brought; a string may hold it too, which costs time only."""
DECIMAL: Final = -5
"""The smallest power of ten that V4 writes without an exponent."""
MAX_DEPTH: Final = 127
"""Nested deeper, text is taken for no JSON."""


def plain_float(number: float) -> str:
    """V4.1: as Python writes it (`1e-07`)."""
    return repr(number)


def v4_float(number: float) -> str:
    """V4: an exponent has no leading zero (`1e-7`), and 0.00001 is written out."""
    text = repr(number)
    digits, e, exponent = text.partition("e")
    if not e:
        return text
    power = int(exponent)
    if power < DECIMAL or power > 0:
        return f"{digits}e{power:+d}"
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    return f"{sign}0.{'0' * (-power - 1)}{digits.replace('.', '')}"


def load(text: str) -> Any:
    """Raises ValueError for what is no JSON, or holds what no prompt can show (a number that no
    float holds, a lone surrogate), and for text that is nested too deep."""
    try:
        value = _decoder.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if "\\u" in text:
        # Why: an escaped lone surrogate is JSON, but no text that could be tokenised.
        _encoder.encode(value).encode()
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError("nested too deep")
    return value


def spaced(value: Any, float_text: FloatText) -> str:
    """`value` as JSON text."""
    text = _encoder.encode(value)
    if float_text is plain_float or EXPONENT.search(text) is None:
        return text
    return _write(value, float_text)


def _write(value: Any, float_text: FloatText) -> str:
    match value:
        case float():
            return float_text(value)
        case dict():
            members = (f"{_encoder.encode(k)}: {_write(v, float_text)}"
                       for k, v in value.items())  # fmt: skip
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(_write(item, float_text) for item in value) + "]"
        case _:
            return _encoder.encode(value)


def _integer(text: str) -> int | float:
    if text == "-0":
        return -0.0
    if len(text) > len(str(INT_MIN)):
        return _float(text)
    number = int(text)
    return number if INT_MIN <= number <= UINT_MAX else float(number)


def _float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:32]} does not fit a float")
    return number


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


_decoder: Final = json.JSONDecoder(
    parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant
)
_encoder: Final = json.JSONEncoder(ensure_ascii=False)


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [
            inner for item in level for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return depth
