"""Counts, sums, judges, moves: the balance of experts while they serve. Once a step, on all ranks.

`boundary` is called between two steps, by every rank, as often as every other: so what depends on
its count is the same everywhere. What takes long runs beside the steps (`backstage.py`): summing
the counts of all ranks, the policy, and the moves, a bounded number of bytes a stage.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import final

import msgspec
import numpy as np
import torch
import torch.distributed as dist

from tokenwire.core.tokens import Figure
from tokenwire.plugins.engines.cuda.balance.backstage import Backstage
from tokenwire.plugins.engines.cuda.balance.mover import Mover
from tokenwire.plugins.engines.cuda.balance.table import Counter, ExpertTable
from tokenwire.plugins.engines.cuda.parallel.group import HostGroup
from tokenwire.plugins.engines.cuda.policy.experts.balance import balancedness
from tokenwire.plugins.engines.cuda.policy.experts.bursty import per_step
from tokenwire.plugins.engines.cuda.policy.experts.moves import Stage, stages
from tokenwire.plugins.engines.cuda.policy.experts.placement import (
    Floats,
    Ints,
    Placement,
    placement_of,
)
from tokenwire.plugins.engines.cuda.policy.experts.rollout import Rollout
from tokenwire.plugins.engines.cuda.policy.experts.settle import settled
from tokenwire.plugins.engines.cuda.policy.experts.window import LoadWindow
from tokenwire.plugins.engines.cuda.settings import Rebalance

__all__ = ("Rebalancer",)

LOG = logging.getLogger("tokenwire.engine.balance")
EVERY = 8
"""Steps between two meetings of the ranks."""
TOLD = 32
"""Steps whose counts are summed together."""
MIB = 1 << 20


@final
class _Found(msgspec.Struct, frozen=True):
    """What the sum of some steps' counts led to; the same on all ranks."""

    scores: Floats
    """[steps, layers]."""
    target: Placement | None = None
    stages: tuple[Stage, ...] = ()


@final
class Rebalancer:
    def __init__(
        self,
        placement: Placement,
        tables: Sequence[ExpertTable],
        counter: Counter,
        mover: Mover,
        *,
        everyone: HostGroup,
        sums: HostGroup,
        settings: Rebalance | None,
        every: int = EVERY,
        told: int = TOLD,
    ) -> None:
        """`tables`: a layer of the mixture each. `everyone`: all ranks, for the caller's thread;
        `sums`: the same for the thread beside it alone. `settings` None: experts stay, and their
        balance is told. `told`: as `counter` has room for, at least."""
        self.placement = placement
        self._tables, self._counter, self._mover = tuple(tables), counter, mover
        self._sums = sums
        self._settings = settings or Rebalance()
        self._moves = settings is not None
        self._every, self._told = every, told
        self._backstage = Backstage(everyone)
        self._window = LoadWindow(
            placement.layout,
            placement.layers,
            steps=self._settings.window,
            interval=self._settings.interval,
            bar=self._settings.bar,
        )
        self._placements: list[Placement] = []
        """Under which each step was made whose counts are not yet summed."""
        self._steps = 0
        self._rollout: Rollout | None = None
        self._target = placement
        self._scores: Floats = np.ones((1, placement.layers), np.float32)
        self._rebalances = self._moved = 0

    def boundary(self) -> None:
        """A step is launched, and the next one is not. Raises what went wrong beside the steps:
        the group cannot go on then."""
        self._counter.push()
        self._placements.append(self.placement)
        self._steps += 1
        if self._steps % self._every == 0:
            self._backstage.meet()
        if len(self._placements) == self._told:
            self._sum()

    def figures(self) -> tuple[Figure, ...]:
        """For status; from any thread."""
        scores = self._scores.mean(axis=0)
        # Why of one: they are counted on all ranks alike, and a group's status is a sum.
        own = self._sums.index == 0
        return (
            *(
                Figure("expert_balancedness", (float(score),), str(layer))
                for layer, score in enumerate(scores)
            ),
            Figure("expert_rebalances", (float(self._rebalances * own),)),
            Figure("expert_moves", (float(self._moved * own),)),
        )

    def close(self) -> None:
        self._backstage.close()

    # --- beside the steps ---------------------------------------------------------------------

    def _sum(self) -> None:
        counts, event = self._counter.take()
        made_under, self._placements = self._placements, []
        # Why not that of the last step: experts may have switched since.
        start = self.placement if self._moves and self._rollout is None else None

        def work() -> _Found:
            if event is not None:
                event.synchronize()
            if self._sums.size > 1:
                dist.all_reduce(counts, group=self._sums.process_group)
            return self._judge(counts.numpy().astype(np.int64), made_under, start)

        self._backstage.give(work, self._take)

    def _judge(
        self, counts: Ints, made_under: Sequence[Placement], start: Placement | None
    ) -> _Found:
        """`start`: from which experts may move; None: they may not now."""
        for step, placement in zip(counts, made_under, strict=True):
            self._window.push(step, placement)
        layout = self.placement.layout
        by_rank = counts.reshape(*counts.shape[:2], layout.ranks, -1).sum(axis=3)
        scores = balancedness(by_rank.astype(np.float32))
        verdict = self._window.verdict()
        if start is None or not verdict.wants_rebalance:
            return _Found(scores)
        LOG.info("experts are %s: they are placed anew", verdict.reason)
        # Why from one rank: floats of other machines may differ in a bit, and so may placements.
        table = b""
        if self._sums.index == 0:
            found = settled(start, per_step(self._window.load(), layout))
            table = found.physical_to_logical.tobytes()
        sent = self._sums.broadcast_bytes(table if self._sums.index == 0 else None)
        shape = self.placement.layers, layout.slots
        target = placement_of(layout, np.frombuffer(sent, np.int64).reshape(shape))
        size = self._mover.expert_bytes
        most = max(self._settings.step_mib * MIB, size)
        parts = stages(start, target, bytes_per_expert=size, bytes_per_step=most)
        return _Found(scores, target, tuple(parts))

    def _take(self, found: _Found) -> None:
        self._scores = found.scores
        if found.target is None or self._rollout is not None:
            return
        self._target = found.target
        self._rollout = Rollout(found.stages)
        self._go_on()

    def _go_on(self) -> None:
        rollout = self._rollout
        assert rollout is not None
        if rollout.is_done:
            self._rebalances += 1
            self._rollout = None
            return
        stage = rollout.start()
        self._backstage.give(lambda: self._mover.fetch(stage), lambda _: self._fetched(rollout))

    def _fetched(self, rollout: Rollout) -> None:
        """All ranks have the stage whole."""
        rollout.finish()
        for stage in rollout.commit(rollout.staged):
            self._moved += len(stage.fetches) + len(stage.copies)
            if stage.layers:
                self._switch(stage)
        self._go_on()

    def _switch(self, stage: Stage) -> None:
        with torch.inference_mode():
            self._mover.switch(stage)
            table = self.placement.physical_to_logical.copy()
            layers = list(stage.layers)
            table[layers] = self._target.physical_to_logical[layers]
            self.placement = placement_of(self.placement.layout, table)
            for layer in layers:
                self._tables[layer].put(self.placement)
