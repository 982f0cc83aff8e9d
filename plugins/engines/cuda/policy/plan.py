"""What one step computes: values that the scheduler hands to the runner. Knows no tensor."""

from __future__ import annotations

from typing import final

from msgspec import Struct

from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("Plan", "Row")


@final
class Row(Struct, frozen=True, gc=False):
    """Tokens [start, start + count) of a sequence; the last len(drafts) of them are drafts.

    Where `start + count - len(drafts)` is more than the sequence has known tokens, the input id is
    the one that its row of the step before samples on the device."""

    seq: Sequence
    epoch: int
    start: int
    count: int
    drafts: tuple[int, ...]
    samples: bool
    """It reaches the end: the row wants 1 + len(drafts) ids."""


@final
class Plan(Struct, frozen=True):
    step: int
    rows: tuple[Row, ...]
    """Rows of one token first."""
    decode_rows: int
    """How many rows have one token."""
    tokens: int
    preempted: tuple[Sequence, ...] = ()
    """They gave back their blocks and wait again."""
    grown: tuple[Sequence, ...] = ()
    """Their block tables have new entries."""

    @property
    def has_effect(self) -> bool:
        """Something changed, be it without a row: the next plan may be another one."""
        return bool(self.rows or self.preempted or self.grown)
