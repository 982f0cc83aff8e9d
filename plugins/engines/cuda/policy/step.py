"""A plan in the making: its rows, what is left of its budget, and who gave way. Knows no block."""

from __future__ import annotations

from typing import final

from tokenwire.plugins.engines.cuda.policy.plan import Plan, Row
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Step",)


@final
class Step:
    __slots__ = (
        "_most",
        "budget",
        "chunk",
        "grown",
        "ones",
        "preempted",
        "reserved",
        "rows",
    )

    def __init__(self, budget: int, chunk: int) -> None:
        """`budget`: tokens of the step; `chunk`: of one row."""
        self._most = budget
        self.chunk = chunk
        self.budget = budget
        """Less the tokens of `rows`."""
        self.ones: list[Row] = []
        """Rows of one token."""
        self.rows: list[Row] = []
        self.grown: list[Sequence] = []
        self.preempted: list[Sequence] = []
        self.reserved: list[int] | None = None
        """Blocks a group that running sequences are expected to take; None: not counted yet."""

    @property
    def left(self) -> int:
        return self.budget - len(self.ones)

    def end_of(self, seq: Sequence, start: int) -> int:
        """Where a row of it that begins at `start` ends."""
        return start + min(seq.target - start, self.chunk, self.left)

    def advance(self, seq: Sequence, end: int) -> None:
        """A row up to `end` tokens, for which there is room."""
        start, samples = seq.computed, end == seq.target
        seq.computed = end
        if samples:
            seq.target = end + 1
            seq.pending += 1
        else:
            seq.flying += 1
        self.put(Row(seq, seq.epoch, start, end - start, (), samples))

    def put(self, row: Row) -> None:
        if row.count == 1:
            self.ones.append(row)
        else:
            self.rows.append(row)
            self.budget -= row.count

    def drop(self, seq: Sequence) -> None:
        """Take back the row of a sequence that gives way, if it has one."""
        for rows in (self.ones, self.rows):
            for index, row in enumerate(rows):
                if row.seq is seq:
                    del rows[index]
                    self.budget += row.count if row.count > 1 else 0
                    if row.samples:
                        seq.pending -= 1
                    else:
                        seq.flying -= 1
                    return

    def plan(self, number: int) -> Plan:
        return Plan(
            number,
            (*self.ones, *self.rows),
            len(self.ones),
            self._most - self.left,
            tuple(self.preempted),
            # Why the test: a sequence may have grown, and then given way to one before it.
            tuple(seq for seq in self.grown if seq.tables),
        )
