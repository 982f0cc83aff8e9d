"""Which part runs a job: pure, so that the same loads give the same choice."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

__all__ = ("Load", "choose_part")


class Load(Struct, frozen=True):
    """Of one part, as a job comes."""

    tokens: int
    """Of its open choices: prompts, and what they have generated."""
    held: int = 0
    """Of the job's prompt, from its start, that the part has KV of."""


def choose_part(loads: Sequence[Load]) -> int:
    """The index of the part that holds the most of the prompt, among those whose lead over the
    least loaded is no more tokens than that saves; then the least loaded; then the first.

    Without a prefix that is the least loaded. Raises ValueError where there is no part."""
    least = min(load.tokens for load in loads)
    _, _, index = min(
        (-load.held, load.tokens, index)
        for index, load in enumerate(loads)
        if load.tokens - least <= load.held
    )
    return index
