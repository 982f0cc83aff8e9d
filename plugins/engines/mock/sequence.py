"""What the mock engine keeps of a job and of each of its choices. Plain state; decides nothing."""

from __future__ import annotations

from array import array
from typing import final

from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, TokenJob
from tokenwire.plugins.engines.mock.choice import Choice
from tokenwire.plugins.engines.mock.faults import Faults
from tokenwire.plugins.engines.mock.pool import Holding

__all__ = ("Buffered", "JobState", "Sequence")


@final
class Buffered:
    """What was made and may not be sent yet, for want of credit."""

    __slots__ = ("finish", "forced", "ids")

    def __init__(self) -> None:
        self.ids: array[int] = array("I")
        self.forced = bytearray()
        """One flag an id."""
        self.finish: Finish | None = None


@final
class JobState:
    __slots__ = ("cached", "credit", "faults", "hashes", "job", "live", "sequences")

    def __init__(self, job: TokenJob, faults: Faults | None) -> None:
        self.job = job
        self.faults = faults
        self.credit = job.credit
        self.sequences: list[Sequence] = []
        self.live = job.n
        """Choices that have not ended."""
        self.hashes: list[bytes] | None = None
        """Of the full blocks of prompt and resume_ids; None: not needed yet."""
        self.cached: int | None = None
        """Prompt tokens that were in the cache when the job began."""


@final
class Sequence:
    __slots__ = (
        "at",
        "buffered",
        "capacity",
        "choice",
        "due",
        "holding",
        "index",
        "is_blocked",
        "is_over",
        "is_plain",
        "is_started",
        "is_waiting",
        "order",
        "state",
    )

    def __init__(self, state: JobState, index: int, choice: Choice, order: int) -> None:
        self.state = state
        self.index = index
        self.choice = choice
        self.order = order
        self.at = len(state.job.resume_ids)
        """Ids delivered, those of earlier attempts included."""
        self.due = 0.0
        """When its next step may be, by the loop's clock."""
        self.is_waiting = False
        self.is_blocked = False
        """At the cap, until credit comes."""
        self.is_started = False
        """Its first delta is out."""
        job = state.job
        self.is_plain = job.credit is None and job.logprobs is None and job.reasoning is None
        """Its deltas between the first and the last hold ids alone."""
        self.is_over = False
        """Its finish is out."""
        self.buffered: Buffered | None = None if state.credit is None else Buffered()
        self.holding: Holding | None = None
        self.capacity: float = 0
        """Output ids that its blocks have room for."""

    def tokens(self) -> TokenIds:
        """Everything that is or will be in its KV cache."""
        return TokenIds(self.state.job.prompt + self.choice.output)

    def rank(self) -> tuple[int, int]:
        """Smaller goes first: the more urgent, then the older."""
        return (-self.state.job.priority, self.order)
