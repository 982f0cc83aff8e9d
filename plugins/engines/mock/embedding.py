"""A prompt's vector, made from its ids: a direction for each id, and their sum. Knows no time."""

from __future__ import annotations

import math
from collections import Counter

from tokenwire.core.seeds import splitmix64
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, Finish, FinishCause, FinishKind, TokenDelta, TokenJob

__all__ = ("embedded", "vector")

STOP = Finish(FinishKind.STOP, FinishCause.EOS)
MASK = (1 << 64) - 1


def embedded(job: TokenJob, size: int) -> list[TokenDelta]:
    """Every choice's only delta."""
    counts = Counts(prompt=len(job.prompt), computed=len(job.prompt))
    found = (vector(job.prompt, size),)
    return [
        TokenDelta(
            job.job,
            attempt=job.attempt,
            choice=choice,
            vectors=found,
            counts=counts,
            finish=STOP,
        )
        for choice in range(job.n)
    ]


def vector(ids: TokenIds, size: int) -> tuple[float, ...]:
    """Of length 1; its numbers are pseudo-random, and the same in every process."""
    found = [0.0] * size
    for id, count in Counter(ids).items():
        state = splitmix64(id)
        for place in range(size):
            state = splitmix64((state + place) & MASK)
            found[place] += count * (state / 2**63 - 1)
    length = math.sqrt(math.fsum(value * value for value in found))
    if not length:
        return (1.0, *found[1:])
    return tuple(value / length for value in found)
