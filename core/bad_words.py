"""Words that an answer must not hold, as far as single token ids can keep it from them. Pure.

A word is written alone or behind a space. Where such a spelling is one token, or holds a token that
is banned already, to ban the token is to ban the spelling; others would need an engine that looks
at several tokens at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tokenwire.core.ports.tokenizer import Tokenizer

__all__ = ("BANNED", "banned_ids")

BANNED: Final = -100.0
"""The bias that OpenAI's API defines as a ban."""


def banned_ids(words: Iterable[str], tokenizer: Tokenizer) -> tuple[tuple[int, ...], bool]:
    """The ids to ban, rising; and whether no spelling of any word is left."""
    spellings = [
        tokenizer.encode(text)
        for word in words
        for text in dict.fromkeys((word, f" {word.lstrip(' ')}"))
    ]
    banned = {spelling[0] for spelling in spellings if len(spelling) == 1}
    return tuple(sorted(banned)), all(not banned.isdisjoint(each) for each in spellings)
