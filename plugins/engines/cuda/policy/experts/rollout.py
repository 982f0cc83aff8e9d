"""One rank's part in a change of placement: what it moves next, and when layers switch everywhere.

Each rank tells in the step's agreement how many stages it has whole, sent and received; the least
of all ranks is what every rank has, so all switch the same layers at the same step boundary. Knows
no collective: the least comes in as a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tokenwire.plugins.engines.cuda.policy.experts.moves import Stage

__all__ = ("Rollout",)


@final
class Rollout:
    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)
        self._committed = 0
        self.staged = 0
        """Stages that this rank has whole: what it tells the others."""

    @property
    def is_done(self) -> bool:
        return self._committed == len(self._stages)

    def can_start(self) -> bool:
        """Whether there is a stage to move in this step; one at a time, so that staging memory
        stays within its bound."""
        return self.staged == self._committed < len(self._stages)

    def start(self) -> Stage:
        """The stage to move now; ValueError unless it can start."""
        if not self.can_start():
            raise ValueError(
                f"wanted a stage to start, but {self.staged} are staged and {self._committed} "
                f"committed of {len(self._stages)}: commit first"
            )
        return self._stages[self._committed]

    def finish(self) -> None:
        """All that this rank sends and receives of the started stage has arrived."""
        self.start()
        self.staged += 1

    def commit(self, least_staged: int) -> tuple[Stage, ...]:
        """At a step boundary, with the least `staged` of all ranks: the stages whose `layers`
        switch now, here as on every rank. ValueError where this rank has fewer than the least."""
        if not self._committed <= least_staged <= self.staged:
            raise ValueError(
                f"wanted {self._committed}..{self.staged} stages that all ranks have, got "
                f"{least_staged}: the ranks' agreement is broken"
            )
        switched = self._stages[self._committed : least_staged]
        self._committed = least_staged
        return switched
