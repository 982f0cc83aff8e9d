"""What the parts of a group agree on, once a step. Pure, and the same on all. Knows no tensor.

Parts that share experts make every forward pass together. Before each, every part says what it is
about to do, and from what all said each works out the same: whether there is a pass (who has
nothing runs one blank token), to how many tokens parts are padded, what the next step may hold.

A *wave* goes from the first job that reaches an idle group to the last that ends; between waves
all sleep. Whoever hands jobs out numbers them, and tells that number to the parts that get none of
them too. A wave is over when no part has work and all have heard the same number: as long as a job
is on its way to a part, the others have heard a higher one.

Prompts are held back until they can be computed on all busy parts at once, for one part's prompts
make all wait; but not where a part has few sequences left to decode, and not for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from msgspec import Struct, convert
from msgspec.structs import astuple

__all__ = ("Agreement", "Pace", "Rules", "Vote", "Wake", "agree")


@final
class Wake(Struct, frozen=True):
    """To a part that sleeps: another one has jobs."""

    number: int
    """Of the wave."""


@final
class Vote(Struct, frozen=True):
    """What one part says of the step that it has scheduled, and of the next."""

    seen: int
    """The highest number of a wave that it heard."""
    is_busy: bool = False
    """It has jobs, in whatever state, or steps in flight."""
    rows: int = 0
    tokens: int = 0
    is_decode: bool = True
    """All its rows have one token; so has no row."""
    may_graph: bool = False
    """This step of it can be padded to a graph's size."""
    has_prefill: bool = False
    """It has prompts that could be computed in the next step."""
    running: int = 0
    """Sequences that decode."""
    is_stopping: bool = False

    def numbers(self) -> tuple[int, ...]:
        """As `of` reads them."""
        return tuple(int(value) for value in astuple(self))

    @staticmethod
    def of(numbers: Sequence[int]) -> Vote:
        """Raises ValueError for another version's."""
        names = Vote.__struct_fields__
        if len(numbers) != len(names):
            raise ValueError(f"a vote: wanted {len(names)} numbers, got {len(numbers)}")
        return convert(dict(zip(names, numbers, strict=True)), Vote, strict=False)


@final
class Rules(Struct, frozen=True):
    """The same on all parts."""

    sizes: tuple[int, ...] = ()
    """Tokens of decode steps that graphs were captured for, ascending; none: no graphs."""
    low: int = 1
    """A part with fewer sequences that decode does not hold its prompts back."""
    patience: int = 8
    """Steps that prompts are held back at most."""


@final
class Agreement(Struct, frozen=True):
    goes: bool
    """There is a forward pass. Who has no rows runs a blank token."""
    span: int = 0
    """Tokens that the fullest part has, or the size of the graph that holds them; 0: no pass."""
    prefill_next: bool = True
    """The next step may compute prompts."""
    waited: int = 0
    """Steps that prompts have been held back."""
    is_over: bool = False
    """The wave is over: sleep until there is word from outside."""
    stops: bool = False
    """All leave together, now."""


def agree(votes: Sequence[Vote], rules: Rules, waited: int = 0) -> Agreement:
    """`votes`: of all parts, this one's too. `waited`: of the agreement before. Raises ValueError
    where there are no votes."""
    if not votes:
        raise ValueError("wanted the vote of every part, got none")
    stops = any(vote.is_stopping for vote in votes)
    goes = not stops and any(vote.rows for vote in votes)
    allowed, waits = _prefills(votes, rules, waited)
    return Agreement(
        goes=goes,
        span=_span(votes, rules) if goes else 0,
        prefill_next=allowed,
        waited=waits,
        is_over=not (stops or goes or any(vote.is_busy for vote in votes))
        and len({vote.seen for vote in votes}) == 1,
        stops=stops,
    )


def _span(votes: Sequence[Vote], rules: Rules) -> int:
    most = max(vote.tokens for vote in votes)
    if all(vote.is_decode and vote.may_graph for vote in votes):
        return next((size for size in rules.sizes if size >= most), most)
    return most


def _prefills(votes: Sequence[Vote], rules: Rules, waited: int) -> tuple[bool, int]:
    """Whether the next step may compute prompts, and how many steps they have then waited."""
    if len(votes) == 1:
        return True, 0
    wanting = [vote for vote in votes if vote.has_prefill]
    if not wanting:
        # Why allowed where all are low: whoever gets a job first need not be asked.
        return all(vote.running < rules.low for vote in votes), 0
    if (
        all(vote.has_prefill for vote in votes if vote.is_busy)
        or any(vote.running < rules.low for vote in wanting)
        or waited >= rules.patience
    ):
        return True, 0
    return False, waited + 1


@final
class Pace:
    """One part's memory from step to step: what it heard, and what was agreed last."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.seen = 0
        self.agreed = Agreement(goes=False, is_over=True)
        self._settled = 0

    def hear(self, number: int) -> None:
        """Of a wave. To be called when the jobs that came with it have been taken."""
        self.seen = max(self.seen, number)

    @property
    def is_resting(self) -> bool:
        """The wave is over, and nothing was heard of another."""
        return self.agreed.is_over and self.seen == self._settled

    def settle(self, votes: Sequence[Vote]) -> Agreement:
        self.agreed = agree(votes, self.rules, self.agreed.waited)
        self._settled = self.seen
        return self.agreed
