"""One choice that is held to a grammar: the gate before it, the matcher behind it."""

from __future__ import annotations

from typing import final

import numpy as np

from tokenwire.core.tokens import Constraint, ReasoningBudget
from tokenwire.plugins.engines.cuda.constrained import Constrained
from tokenwire.plugins.engines.cuda.edits import Bits
from tokenwire.plugins.engines.cuda.grammar.backend import Follow, Matcher, Words
from tokenwire.plugins.engines.cuda.grammar.gate import Gate, GateState

__all__ = ("Held",)


@final
class Held(Constrained):
    def __init__(
        self,
        constraint: Constraint,
        reasoning: ReasoningBudget | None,
        follow: Follow,
        words: Words,
    ) -> None:
        self._gate = Gate(constraint, reasoning)
        self._follow = follow
        self._matcher: Matcher | None = follow()
        """None: what came is not of the grammar."""
        self._words = words
        self._next: Bits | None = None
        """What may come next, where it is known already."""
        self.is_over = False

    def bits(self) -> Bits | None:
        opener = self._gate.opener
        if self._gate.state is GateState.CLOSED:
            return None
        if self._matcher is None:
            return None if opener is None else self._only(opener)
        bits = self._ask()
        return bits if opener is None else bits | self._only(opener)

    def push(self, id: int) -> None:
        gate, was_closed = self._gate, self._gate.state is GateState.CLOSED
        gate.push(id)
        if was_closed:
            return
        # Why before it is decided too: the grammar may begin as the reasoning's marker does.
        self._next = None
        if self._matcher is not None and not self._matcher.accept(id):
            # The marker's id; else a forced one, or eos: then the answer is free from here on.
            self._matcher = None
        if gate.state is GateState.CLOSED:
            self._matcher = self._follow()
        elif gate.state is GateState.OPEN and self._matcher is not None:
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

    def _only(self, id: int) -> Bits:
        bits = np.zeros(-(-self._words.size // 32), np.uint32)
        if id < self._words.size:
            bits[id // 32] = np.uint32(1) << np.uint32(id % 32)
        return bits.view(np.int32)
