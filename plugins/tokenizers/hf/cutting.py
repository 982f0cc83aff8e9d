"""Where text may be cut so that its parts encode to the ids of the whole. Nothing is assumed of a
tokenizer that its tokens, its flags and a probe do not show.

Before a special token: the library takes added tokens out of the text first and encodes the runs
between them apart. So it may be cut before one that strips no white space to its left, is matched
in the text as it stands (before the normaliser), and overlaps no other added token's spelling.

Between a line's end and a letter, and between a word and the space before the next: pre-tokenizers
split there, and where there is none, no merge can reach over a cut that no token of the vocabulary
spells. The probe shows that the pre-tokenizer's choice on either side needs no sight of the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from tokenwire.plugins.tokenizers.hf.fast import SAMPLES
from tokenwire.plugins.tokenizers.hf.file import FileToken

__all__ = ("breaks_of", "cuts_of")

Encode = Callable[[str], Sequence[int]]

LINES: Final = r"(?<=[^\s]\n)(?=[A-Za-z])"
WORDS: Final = r"(?<=[A-Za-z]{2})(?= [A-Za-z]{2})"
SPELLED: Final = {LINES: r"\n[A-Za-z]", WORDS: r"[A-Za-z] [A-Za-z]"}
"""A token whose text matches spans such a cut."""
PROBE: Final = (
    *SAMPLES,
    "def f(x):\n    return x\n\nclass A:\n    pass\nimport this\n",
    "one two\nthree  four\n\nfive\n six seven's I'll don't\nThe end. of it\r\nall",
    "zu Hause ist's\nam schoensten. ab\n" * 3,
)


def cuts_of(tokens: Sequence[FileToken], encode: Encode) -> tuple[str, ...]:
    spellings = [token.content for token in tokens]
    begins = {text[:k] for text in spellings for k in range(1, len(text))}
    ends = {text[k:] for text in spellings for k in range(1, len(text))}
    whole = "\0".join(spellings)
    fit = [
        token.content
        for token in tokens
        if token.special
        and not (token.lstrip or token.single_word or token.normalized)
        and _stands_alone(token.content, whole, begins, ends)
    ]
    probed = fit[:1]
    holds = all(
        _is_sum(encode, before, cut + after)
        for cut in probed
        for before in PROBE
        for after in ("", " a", "\nb", cut, *PROBE[:3])
    )
    return tuple(fit) if holds else ()


def _stands_alone(text: str, whole: str, begins: set[str], ends: set[str]) -> bool:
    """Whether wherever `text` stands, the library's leftmost-longest match is it: no other token
    holds it, and none begins inside it or ends there."""
    proper = range(1, len(text))
    return (
        whole.count(text) == 1
        and not any(text[k:] in begins for k in proper)
        and not any(text[:k] in ends for k in proper)
    )


def breaks_of(token_texts: str, encode: Encode) -> re.Pattern[str] | None:
    """`token_texts`: all tokens' text, with NUL between."""
    kept = [
        place
        for place, spelled in SPELLED.items()
        if not re.search(spelled, token_texts) and _holds(place, encode)
    ]
    return re.compile("|".join(kept)) if kept else None


def _holds(place: str, encode: Encode) -> bool:
    return all(
        _is_sum(encode, text[: match.start()], text[match.start() :])
        for text in PROBE
        for match in re.finditer(place, text)
    )


def _is_sum(encode: Encode, before: str, after: str) -> bool:
    return [*encode(before + after)] == [*encode(before), *encode(after)]
