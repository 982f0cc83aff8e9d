"""Candidates of one prompt, whole, and which of them are the best. Knows no wire.

The best have the highest mean log probability a token (of the tokens whose text is shown).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field

from tokenwire.core.events import TokenLogprob
from tokenwire.plugins.protocols.completions.entries import Arrays

__all__ = ("Candidate", "best")


class Candidate(Struct):
    """One choice so far."""

    text: str = ""
    arrays: dict[str, list[object] | None] = field(default_factory=dict)
    finish: dict[str, object] = field(default_factory=dict)
    parts: int = 0
    total: float = 0.0
    tokens: int = 0

    def add(self, arrays: Arrays | None) -> None:
        """Log probabilities of more of the text; None where none were asked for."""
        for name, values in (arrays or {}).items():
            own = self.arrays.get(name)
            if own is None or values is None:
                self.arrays[name] = values
            else:
                own.extend(values)

    def score(self, tokens: Sequence[TokenLogprob]) -> None:
        for token in tokens:
            if not math.isnan(token.logprob):
                self.total += token.logprob
                self.tokens += 1

    @property
    def mean(self) -> float:
        """Of an answer without tokens: the worst there is."""
        return self.total / self.tokens if self.tokens else -math.inf


def best(found: Sequence[Candidate], *, candidates: int, n: int) -> list[Candidate]:
    """The `n` best of each prompt's `candidates`; all of them stay in their order."""
    chosen: list[Candidate] = []
    for start in range(0, len(found), candidates):
        own = list(found[start : start + candidates])
        if n < candidates:
            own = sorted(own, key=lambda each: each.mean, reverse=True)[:n]
        chosen += own
    return chosen
