"""What the mock engine keeps of a job and of each of its choices. Plain state; decides nothing."""

from __future__ import annotations

from typing import final

from tokenwire.core.outlet import Allowance, Outlet
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, TokenJob
from tokenwire.plugins.engines.mock.choice import Choice
from tokenwire.plugins.engines.mock.faults import Faults
from tokenwire.plugins.engines.mock.pool import Holding

__all__ = ("JobState", "Sequence")


@final
class JobState:
    __slots__ = (
        "allowance",
        "cached",
        "faults",
        "hashes",
        "is_plain",
        "job",
        "live",
        "sequences",
    )

    def __init__(self, job: TokenJob, faults: Faults | None) -> None:
        self.job = job
        self.faults = faults
        self.is_plain = job.logprobs is None
        """Its deltas are ids, and nothing else but at the ends."""
        self.allowance = Allowance(job.credit)
        self.sequences: list[Sequence] = []
        self.live = job.n
        """Choices that have not ended."""
        self.hashes: list[bytes] | None = None
        """Of the full blocks of prompt and resume_ids; None: not needed yet."""
        self.cached: int | None = None
        """Prompt tokens that were in the cache when the job began; None: it did not begin."""

    def counts(self) -> Counts:
        """Of the prompt."""
        prompt, cached = len(self.job.prompt), self.cached
        return Counts(prompt, cached or 0, 0 if cached is None else prompt - cached)


@final
class Sequence:
    __slots__ = (
        "capacity",
        "choice",
        "due",
        "holding",
        "index",
        "is_waiting",
        "order",
        "outlet",
        "state",
    )

    def __init__(self, state: JobState, outlet: Outlet, choice: Choice, order: int) -> None:
        self.state = state
        self.index = outlet.index
        self.outlet = outlet
        self.choice = choice
        self.order = order
        self.due = 0.0
        """When its next step may be, by the loop's clock."""
        self.is_waiting = False
        self.holding: Holding | None = None
        self.capacity: float = 0
        """Output ids that its blocks have room for."""

    def tokens(self) -> TokenIds:
        """Everything that is or will be in its KV cache."""
        return TokenIds(self.state.job.prompt + self.choice.output)

    def rank(self) -> tuple[int, int]:
        """Smaller goes first: the more urgent, then the older."""
        return (-self.state.job.priority, self.order)
