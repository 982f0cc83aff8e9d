"""A short text that a regular expression matches. Knows no schema.

Patterns are read by Python's own parser. What looks around or back is refused: nothing that is made
from left to right can promise it.
"""

from __future__ import annotations

import re
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

__all__ = ("Unmatched", "matching")

TRIES: Final = 8
"""How often loops are made longer by one, where a text must have a length."""
PREFERRED: Final = "a0A _-.,:/@+"
CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}


class Unmatched(ValueError):
    """No text was found for a pattern; the message says why."""


def matching(pattern: str, *, least: int = 0, most: int | None = None, whole: bool = False) -> str:
    """A text of `least` to `most` characters that `pattern` matches: somewhere in it (JSON Schema),
    or as a `whole`. Raises Unmatched."""
    try:
        compiled = re.compile(pattern)
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unmatched(f"{pattern[:100]!r} is no regular expression: {error}") from None
    check = compiled.fullmatch if whole else compiled.search
    for extra in (*range(TRIES), least):
        text = _sequence(tree, extra)
        if not whole and len(text) < least:
            for padded in (text + "a" * (least - len(text)), "a" * (least - len(text)) + text):
                if check(padded):
                    text = padded
                    break
        if least <= len(text) <= (len(text) if most is None else most) and check(text):
            return text
    raise Unmatched(f"found no text of the asked length for the pattern {pattern[:100]!r}")


def _sequence(tree: Any, extra: int) -> str:
    return "".join(_node(op, value, extra) for op, value in tree)


def _node(op: Any, value: Any, extra: int) -> str:
    if op is ops.LITERAL:
        return chr(value)
    if op is ops.NOT_LITERAL:
        return next(each for each in PREFERRED if ord(each) != value)
    if op is ops.ANY:
        return "a"
    if op is ops.IN:
        return _one_of(value)
    if op is ops.BRANCH:
        return min([_sequence(branch, extra) for branch in value[1]], key=len)
    if op is ops.SUBPATTERN:
        return _sequence(value[-1], extra)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        low, high, inner = value
        count: int = min(low + extra, high)
        return _sequence(inner, 0 if low + extra > 1 else extra) * count
    if op is ops.ATOMIC_GROUP:
        return _sequence(value, extra)
    if op is ops.AT:
        return ""
    raise Unmatched(f"patterns with {str(op).lower()} are beyond this engine")


def _one_of(items: Any) -> str:
    """The first character of a set that is easy to read, else any."""
    is_negated = items[0][0] is ops.NEGATE
    for code in (*map(ord, PREFERRED), *range(0x20, 0x2FF)):
        if any(_holds(op, value, code) for op, value in items[is_negated:]) != is_negated:
            return chr(code)
    for op, value in items:
        if op is ops.LITERAL:
            return chr(value)
        if op is ops.RANGE:
            return chr(value[0])
    raise Unmatched("a set of characters is empty")


def _holds(op: Any, value: Any, code: int) -> bool:
    if op is ops.LITERAL:
        return bool(code == value)
    if op is ops.RANGE:
        return bool(value[0] <= code <= value[1])
    return re.fullmatch(CATEGORIES[value], chr(code)) is not None
