"""What the loop counts: times of queue, prefill, tokens and steps; tokens by source; errors by op.

Written by the loop's thread, a few additions a step; read from any. Knows no device and no format
but core's figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import final

from tokenwire.core.figures import Histogram
from tokenwire.core.tokens import Figure
from tokenwire.plugins.engines.cuda.choice import Choice
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler

__all__ = ("Meters",)


@final
class Meters:
    def __init__(self) -> None:
        self.now = -1.0
        """When the results that are being brought were there."""
        self.before = -1.0
        """When those before were: most choices had an id then too."""
        self.steady = 0
        """Choices of this step that did. Counted at its end, all at once."""
        self.generated = 0
        self._steps = 0
        self._cached = self._computed = self._accepted = self._rejected = 0
        self._errors: dict[str, int] = {}
        self._queue = Histogram("queue_seconds")
        self._prefill = Histogram("prefill_seconds")
        self._itl = Histogram("inter_token_seconds")
        self._step = Histogram("step_seconds")

    def begin(self, choice: Choice) -> None:
        """It runs for the first time."""
        choice.began = time.monotonic()
        self._queue.add(max(choice.began - choice.task.arrived, 0.0))

    def step(self, launched: float) -> None:
        """Its results are there, and are going to be brought."""
        self.before, self.now = self.now, time.monotonic()
        self._steps += 1
        self._step.add(self.now - max(launched, self.before))

    def settle(self) -> None:
        """They are brought."""
        if self.steady:
            self._itl.add(self.now - self.before, self.steady)
            self.steady = 0

    def hear(self, choice: Choice) -> None:
        """An id of a choice that had none in the step before: its first, or after a pause."""
        if choice.heard:
            self._itl.add(self.now - choice.heard)
            return
        self._prefill.add(self.now - choice.began)
        counts = choice.outlet.counts
        self._cached += counts.cached
        self._computed += counts.computed

    def drafts(self, proposed: int, accepted: int, taken: int) -> None:
        """`taken`: ids that came at once; all but the first without a wait."""
        self._accepted += accepted
        self._rejected += proposed - accepted
        if taken > 1:
            self._itl.add(0.0, taken - 1)

    def error(self, op: str) -> None:
        self._errors[op] = self._errors.get(op, 0) + 1

    def figures(
        self, scheduler: Scheduler, block_bytes: Sequence[int], memory: tuple[int, int] | None
    ) -> tuple[Figure, ...]:
        """`block_bytes`: of one block of each KV group, in all its layers. `memory`: the device's,
        and what of it is in use."""
        found = scheduler.status()
        sizes = {"memory_bytes": memory[0], "memory_used_bytes": memory[1]} if memory else {}
        pools = list(zip(scheduler.kv.pools, block_bytes, strict=True))
        sizes["kv_bytes"] = sum((pool.total + 1) * each for pool, each in pools)
        sizes["kv_used_bytes"] = sum(pool.protected * each for pool, each in pools)
        sizes["kv_cached_bytes"] = sum(pool.evictable * each for pool, each in pools)
        sizes["kv_query_tokens"] = found.query_tokens
        sizes["kv_hit_tokens"] = found.hit_tokens
        sizes["preemptions"] = found.preemptions
        sizes["steps"] = self._steps
        sources = {
            "prompt_computed": self._computed,
            "prompt_cached": self._cached,
            "draft_accepted": self._accepted,
            "draft_rejected": self._rejected,
            "generated": self.generated,
        }
        return (
            *(Figure(name, (float(value),)) for name, value in sizes.items()),
            *(Figure("tokens", (float(count),), source) for source, count in sources.items()),
            *(Figure("op_errors", (float(n),), op) for op, n in dict(self._errors).items()),
            *(each.figure() for each in (self._queue, self._prefill, self._itl, self._step)),
        )
