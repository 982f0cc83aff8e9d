"""Who runs, waits, is parked and holds blocks; how one gives way to another. Knows no budget.

Blocks that a step in flight uses are fenced: they are released when its rows have retired.
"""

from __future__ import annotations

from operator import attrgetter
from typing import final

from tokenwire.plugins.engines.cuda.policy.forecast import Forecast
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables, Tables
from tokenwire.plugins.engines.cuda.policy.ranked import Ranked
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State
from tokenwire.plugins.engines.cuda.policy.sharing import Promises
from tokenwire.plugins.engines.cuda.policy.step import Step

__all__ = ("Board",)

_rank = attrgetter("rank")


@final
class _Fence:
    """Blocks of an epoch that is over, until its rows in flight have retired."""

    __slots__ = ("freed", "rows", "tables")

    def __init__(self, rows: int, tables: Tables, freed: list[int]) -> None:
        self.rows = rows
        self.tables = tables
        self.freed = freed


@final
class Board:
    def __init__(self, kv: BlockTables, forecast: Forecast) -> None:
        self.kv = kv
        self.forecast = forecast
        self.running = Ranked()
        self.waiting = Ranked()
        self.parked: set[Sequence] = set()
        self.holders: set[Sequence] = set()
        """Not running, and yet with blocks: parked ones, and those that were unparked."""
        self.promises = Promises(kv.block_size)
        self.preemptions = 0
        self._fences: dict[tuple[Sequence, int], _Fence] = {}

    @property
    def has_fences(self) -> bool:
        """Some blocks are released only when steps in flight retire."""
        return bool(self._fences)

    def run(self, seq: Sequence) -> None:
        """From waiting; its tables are there."""
        self.waiting.remove(seq)
        seq.state = State.RUNNING
        self.running.add(seq)
        self.promises.make(seq)

    def stop(self, seq: Sequence) -> None:
        """It leaves where it is; where it goes is the caller's to say."""
        match seq.state:
            case State.RUNNING:
                self.running.remove(seq)
                self.promises.withdraw(seq)
            case State.WAITING:
                self.waiting.remove(seq)
            case State.PARKED:
                self.parked.remove(seq)

    def has_room(self, step: Step, seq: Sequence, tokens: int) -> bool:
        """Make room for a running sequence; False: it has to wait for a step."""
        if tokens <= seq.room:
            return True
        while not self.kv.grow(seq, tokens):
            if self._is_coming(seq, tokens) or not self._yield_to(step, seq):
                return False
        step.grown.append(seq)
        return True

    def evict_holder(self, step: Step) -> bool:
        """Take the blocks of one that does not run; False: there is none."""
        if not self.holders:
            return False
        victim = max(self.holders, key=_rank)
        self.evict(victim)
        step.preempted.append(victim)
        return True

    def evict(self, seq: Sequence) -> None:
        """Take the blocks of a sequence that is not running, and is not over."""
        self.holders.discard(seq)
        self.give_back(seq)
        seq.preemptions += 1
        self.preemptions += 1

    def give_back(self, seq: Sequence) -> None:
        """Its epoch ends, and its blocks go: those that a step in flight uses, when it retires."""
        tables = self.kv.detach(seq)
        rows = seq.flying + seq.pending
        if rows:
            freed = self.kv.freed_by(tables) or [0] * len(self.kv.pools)
            self._fences[seq, seq.epoch] = _Fence(rows, tables, freed)
        else:
            self.kv.release(tables)
        seq.epoch += 1
        seq.flying = seq.pending = seq.drafting = 0
        seq.drafts = []
        seq.target = len(seq.tokens)

    def unfence(self, seq: Sequence, epoch: int) -> None:
        """A row of an epoch that is over has retired."""
        fence = self._fences[seq, epoch]
        fence.rows -= 1
        if not fence.rows:
            del self._fences[seq, epoch]
            self.kv.release(fence.tables)

    def _is_coming(self, seq: Sequence, tokens: int) -> bool:
        """Whether steps in flight will give back enough when they retire."""
        if not self._fences:
            return False
        need = -(-(tokens - seq.room) // self.kv.block_size)
        return all(
            pool.available + sum(fence.freed[index] for fence in self._fences.values()) >= need
            for index, pool in enumerate(self.kv.pools)
        )

    def _yield_to(self, step: Step, seq: Sequence) -> bool:
        """Free blocks of one that does not run, or else of the last in rank. False: nobody gives
        way to `seq`."""
        if self.evict_holder(step):
            return True
        victim = self.running.items[-1]
        if victim is seq:
            # Why it waits, and does not give way to itself: if anybody before it needs its blocks
            # he takes them, and if nobody does, its KV is spared.
            return False
        self._preempt(step, victim)
        return True

    def _preempt(self, step: Step, victim: Sequence) -> None:
        running = self.running.items
        made = sum(seq.output_tokens for seq in running)
        allowed = sum(seq.max_tokens - seq.prompt_tokens for seq in running)
        self.forecast.jump(made, allowed, len(running))
        step.drop(victim)
        step.preempted.append(victim)
        self.stop(victim)
        victim.state = State.WAITING
        self.waiting.add(victim)
        self.evict(victim)
