"""Prompt blocks that a running sequence is about to compute, so that others with the same prefix
wait for them in place of computing them again. Knows no pool."""

from __future__ import annotations

from typing import final

from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Promises",)

SHARED_TOKENS = 32
"""So many tokens are worth a wait."""


@final
class Promises:
    def __init__(self, block_size: int) -> None:
        self._blocks = -(-SHARED_TOKENS // block_size)
        self._size = block_size
        self._leaders: dict[bytes, Sequence] = {}

    def make(self, seq: Sequence) -> None:
        """It runs, and will compute all its known full blocks."""
        leaders = self._leaders
        for name in seq.hashes[seq.stored :]:
            leaders.setdefault(name, seq)

    def keep(self, seq: Sequence, stored: int) -> None:
        """Its blocks from `stored` on have been computed."""
        for name in seq.hashes[stored : seq.stored]:
            self._leaders.pop(name, None)

    def withdraw(self, seq: Sequence) -> None:
        """It does not run any more."""
        leaders = self._leaders
        for name in seq.hashes[seq.stored :]:
            if leaders.get(name) is seq:
                del leaders[name]

    def is_worth_a_wait(self, seq: Sequence, hit: int) -> bool:
        """Somebody computes enough of it after its first `hit` blocks."""
        if not seq.reads_cache:
            return False
        last = hit + self._blocks
        return last <= (len(seq.tokens) - 1) // self._size and seq.hashes[last - 1] in self._leaders
