"""What the scheduler keeps of one choice of a job. Plain state that decides nothing.

tokens    t0 t1 ... tn        prompt and output ids that are known
target    known + pending     what there will be when the steps in flight have retired
computed  <= target           tokens whose KV is written, or will be by a step in flight
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Sequence as Many
from enum import Enum, auto
from typing import final

from tokenwire.core.tokens import KvPin

__all__ = ("Sequence", "State")


class State(Enum):
    WAITING = auto()
    PARKED = auto()
    """Not to be scheduled before `unpark`: its grammar compiles, or it has no credit."""
    RUNNING = auto()
    OVER = auto()


@final
class Sequence:
    """`drafts`, `needs_feedback`, `pins` and `owner` are the loop's to set; the rest is the
    scheduler's, and the loop reads it."""

    __slots__ = (
        "cached_tokens",
        "choice",
        "computed",
        "deadline",
        "drafting",
        "drafts",
        "epoch",
        "expected_tokens",
        "extras",
        "flying",
        "full_at",
        "hashes",
        "is_forgotten",
        "job",
        "max_tokens",
        "needs_feedback",
        "order",
        "owner",
        "pending",
        "pins",
        "preemptions",
        "priority",
        "prompt_tokens",
        "quick",
        "rank",
        "reads_cache",
        "room",
        "state",
        "stored",
        "tables",
        "target",
        "tokens",
        "was_admitted",
    )

    def __init__(
        self,
        job: str,
        prompt: Iterable[int],
        *,
        max_tokens: int,
        choice: int = 0,
        resume: Iterable[int] = (),
        order: int = -1,
        priority: int = 0,
        deadline: float | None = None,
        extras: Many[bytes] = (),
        pins: Many[KvPin] = (),
        needs_feedback: bool = False,
        reads_cache: bool = True,
        expected_tokens: int | None = None,
        owner: object = None,
    ) -> None:
        """`max_tokens`: of prompt and output together. `resume`: output of an earlier attempt.
        `order`: below 0, the scheduler numbers by arrival. `deadline`: by the clock whose time
        `schedule` gets. `extras`: `core.blocks.extras`. `reads_cache`: false where every prompt
        token's hidden state is wanted (prompt logprobs, pooling). `expected_tokens`: of output."""
        self.job = job
        self.choice = choice
        self.tokens = array("I", prompt)
        self.prompt_tokens = len(self.tokens)
        self.tokens.extend(resume)
        self.max_tokens = max_tokens
        self.order = order
        self.priority = priority
        self.rank = (-priority, order)
        """Smaller goes first: the more urgent, then the older."""
        self.deadline = deadline
        self.extras = extras
        self.pins = pins
        self.needs_feedback = needs_feedback
        """Its next id depends on the one before in a way that the device does not know: it is
        never scheduled while ids are in flight."""
        self.reads_cache = reads_cache
        self.expected_tokens = expected_tokens
        self.owner = owner
        self.state = State.WAITING
        self.epoch = 0
        """One more at each preemption and at the end: results of an older epoch are void."""
        self.computed = 0
        self.pending = 0
        """Sampling rows in flight."""
        self.target = len(self.tokens)
        self.flying = 0
        """Rows of this epoch in flight that do not sample."""
        self.drafts: list[int] = []
        """Proposed ids after the last known one: the next step checks them. While an id is in
        flight the sequence waits for it; each id that comes in takes the drafts away, and the loop
        may propose anew."""
        self.drafting = 0
        """Drafts in flight. Until they retire nobody knows where the sequence ends."""
        self.tables: list[list[int]] = []
        """One a KV group: block ids from the start; 0 where the window has left a block behind."""
        self.room = 0
        """Tokens that the tables have room for."""
        self.quick = 0
        """The largest target that needs no look at room and length."""
        self.hashes: list[bytes] = []
        self.stored = 0
        """Blocks from the start that others can find by their hash."""
        self.full_at = 0
        """So many written tokens fill one more block than are stored."""
        self.is_forgotten = False
        """Its blocks get no names: what is in them is wrong."""
        self.was_admitted = False
        self.cached_tokens = 0
        """Prompt tokens that were in the cache when it first ran."""
        self.preemptions = 0

    @property
    def output_tokens(self) -> int:
        return len(self.tokens) - self.prompt_tokens
