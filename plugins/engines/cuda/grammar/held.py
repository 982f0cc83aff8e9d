"""One choice that is held to a grammar: the gate before it, the matcher behind it."""

from __future__ import annotations

from typing import final

import numpy as np

from tokenwire.core.tokens import Constraint, ReasoningBudget
from tokenwire.plugins.engines.cuda.constrained import Constrained
from tokenwire.plugins.engines.cuda.edits import Bits
from tokenwire.plugins.engines.cuda.grammar.backend import Matcher, Words
from tokenwire.plugins.engines.cuda.grammar.gate import Gate, GateState

__all__ = ("Held",)


@final
class Held(Constrained):
    def __init__(
        self,
        constraint: Constraint,
        reasoning: ReasoningBudget | None,
        matcher: Matcher,
        words: Words,
    ) -> None:
        self._gate = Gate(constraint, reasoning)
        self._matcher: Matcher | None = matcher
        self._words = words
        self._next: Bits | None = None
        """What may come next, where it is known already."""
        self.is_over = False

    def bits(self) -> Bits | None:
        gate = self._gate
        if gate.state is GateState.CLOSED or self._matcher is None:
            return None
        if gate.state is GateState.OPENING:
            return self._only(gate.opener)
        bits = self._ask()
        if gate.opener is not None:
            bits = bits | self._only(gate.opener)
        return bits

    def push(self, id: int) -> None:
        if not self._gate.push(id) or self._matcher is None:
            return
        self._next = None
        if not self._matcher.accept(id):
            # A forced id, or eos before the gate opened: the answer is free from here on.
            self._matcher = None
            return
        self.is_over = self._is_complete()

    def _ask(self) -> Bits:
        assert self._matcher is not None
        if self._next is None:
            self._next = np.zeros(-(-self._words.size // 32), np.int32)
            self._matcher.fill(self._next)
        return self._next

    def _is_complete(self) -> bool:
        """Nothing but an end may follow, or nothing at all."""
        rest = self._ask().copy().view(np.uint32)
        for id in self._words.eos_ids:
            rest[id // 32] &= ~(np.uint32(1) << np.uint32(id % 32))
        return not rest.any()

    def _only(self, id: int | None) -> Bits:
        bits = np.zeros(-(-self._words.size // 32), np.uint32)
        if id is not None:
            bits[id // 32] = np.uint32(1) << np.uint32(id % 32)
        return bits.view(np.int32)
