"""One part's side of the agreement that parts make once a step: the collective, and when to wake.

Every leader calls `meet` once a turn of its loop; the policy is `policy/lockstep.py`.
"""

from __future__ import annotations

from typing import final

import numpy as np

from tokenwire.plugins.engines.cuda.parallel.followers import BEAT_S
from tokenwire.plugins.engines.cuda.parallel.group import HostGroup
from tokenwire.plugins.engines.cuda.policy.lockstep import Agreement, Pace, Rules, Vote
from tokenwire.plugins.engines.cuda.policy.plan import Plan
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler

__all__ = ("Lockstep",)

LONGEST_NAP_MS = 16


@final
class Lockstep:
    def __init__(self, leaders: HostGroup, rules: Rules) -> None:
        """`leaders`: of all parts; nobody else may use it from then on."""
        self._leaders = leaders
        self._pace = Pace(rules)
        self._idle = 0
        """Steps in a row in which nobody had anything to compute."""

    @property
    def prefills(self) -> bool:
        """The step that is scheduled now may compute prompts."""
        return self._pace.agreed.prefill_next

    @property
    def has_stopped(self) -> bool:
        return self._pace.agreed.stops

    def hear(self, wave: int) -> None:
        self._pace.hear(wave)

    def sleeps(self, *, is_busy: bool, is_stopping: bool) -> bool:
        """The wave is over and nothing was heard of another: who met now would meet nobody."""
        return self._pace.is_resting and not (is_busy or is_stopping)

    def nap_s(self) -> float:
        """How long to wait for a word from outside after a turn in which nothing was done."""
        if self._pace.is_resting or self._leaders.size == 1:
            return BEAT_S / 2
        # Why not longer: a job of some part waits for its client or its grammar, and its part
        # hears of that alone.
        return min(1 << self._idle, 2 * LONGEST_NAP_MS) // 2 / 1000

    def meet(
        self, plan: Plan, scheduler: Scheduler, *, is_busy: bool, is_stopping: bool
    ) -> Agreement:
        """Waits for the others. Raises RuntimeError where one is gone."""
        is_decode = plan.decode_rows == len(plan.rows)
        vote = Vote(
            seen=self._pace.seen,
            is_busy=is_busy,
            rows=len(plan.rows),
            tokens=plan.tokens,
            is_decode=is_decode,
            may_graph=is_decode and bool(self._pace.rules.sizes),
            has_prefill=scheduler.has_prefill,
            running=scheduler.decoding,
            is_stopping=is_stopping,
        )
        found = self._leaders.all_gather_ints(np.array(vote.numbers(), np.int64))
        agreed = self._pace.settle([Vote.of(numbers) for numbers in found.tolist()])
        self._idle = 0 if agreed.goes else self._idle + 1
        return agreed
