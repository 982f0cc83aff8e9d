"""One regular expression for many words, the longest first at each place. Knows no tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ("any_of",)


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of `words` at the leftmost place, as the library's matcher does.

    Strategy: a tree by first characters, so that thousands of words cost no more than their length;
    an optional rest is greedy, which makes the longest word win.
    """
    pattern = _branch(sorted({word for word in words if word}))
    return re.compile(pattern or r"(?!)")


def _branch(words: list[str]) -> str:
    rests: dict[str, list[str]] = {}
    for word in words:
        if word:
            rests.setdefault(word[0], []).append(word[1:])
    parts = [re.escape(first) + _branch(rest) for first, rest in rests.items()]
    if not parts:
        return ""
    body = parts[0] if len(parts) == 1 and "" not in words else f"(?:{'|'.join(parts)})"
    return body + "?" if "" in words else body
