"""When an answer's grammar begins: at once, after reasoning, after some ids. Knows no grammar.

Where reasoning may come first but has not begun, the answer either begins with the reasoning's
start marker, id by id, or with the grammar: which of them is open as long as they agree.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import final

from tokenwire.core.tokens import Constraint, ReasoningBudget

__all__ = ("Gate", "GateState")


class GateState(Enum):
    UNDECIDED = auto()
    """Nothing came yet: reasoning or the grammar begins."""
    OPENING = auto()
    """In the middle of the reasoning's start marker."""
    CLOSED = auto()
    """What comes is free, up to the marker that opens the gate."""
    OPEN = auto()


@final
class Gate:
    def __init__(self, constraint: Constraint, reasoning: ReasoningBudget | None) -> None:
        self._start: tuple[int, ...] = tuple(reasoning.start_ids) if reasoning is not None else ()
        self._end: tuple[int, ...] = tuple(reasoning.end_ids) if reasoning is not None else ()
        self._taken = 0
        match constraint.start:
            case "now":
                self.state = GateState.OPEN
            case "after_ids":
                self._end = tuple(constraint.after_ids)
                self.state = GateState.CLOSED if self._end else GateState.OPEN
            case "after_reasoning":
                self.state = self._before_reasoning(reasoning)
        self._recent: deque[int] = deque(maxlen=max(len(self._end), 1))

    @property
    def opener(self) -> int | None:
        """The id that begins, or goes on with, the reasoning's start marker."""
        if self.state in (GateState.UNDECIDED, GateState.OPENING):
            return self._start[self._taken]
        return None

    def push(self, id: int) -> None:
        match self.state:
            case GateState.OPEN:
                return
            case GateState.CLOSED:
                self._recent.append(id)
                if tuple(self._recent) == self._end:
                    self.state = GateState.OPEN
            case GateState.UNDECIDED | GateState.OPENING:
                if id != self._start[self._taken]:
                    self.state = GateState.OPEN
                    return
                self._taken += 1
                is_whole = self._taken == len(self._start)
                self.state = GateState.CLOSED if is_whole else GateState.OPENING

    def _before_reasoning(self, reasoning: ReasoningBudget | None) -> GateState:
        if reasoning is None or not self._end:
            return GateState.OPEN
        if reasoning.open:
            return GateState.CLOSED
        return GateState.UNDECIDED if self._start else GateState.OPEN
