"""Which tokens of which sequences the next step computes. Knows no tensor and no clock.

Each step has a budget of tokens. Running sequences go first: those that decode, then those in
their prompt, chunk by chunk; then waiting ones, by priority and age. Where blocks are missing, the
last in rank gives way and computes its KV again later; in such a step nobody is admitted.

Steps may overlap: `schedule` may be called before the step before has been retired. Every row of a
plan must be retired, in the order of the plans. Blocks that a step in flight uses are not handed
out before it has retired.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence as Many
from operator import attrgetter
from typing import final

from msgspec import Struct

from tokenwire.plugins.engines.cuda.policy.forecast import Forecast
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables, Hit, Tables
from tokenwire.plugins.engines.cuda.policy.limits import Limits
from tokenwire.plugins.engines.cuda.policy.plan import Plan, Row
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State
from tokenwire.plugins.engines.cuda.policy.sharing import Promises
from tokenwire.plugins.engines.cuda.policy.waiting import Ranked

__all__ = ("Scheduler", "SchedulerStatus")

_rank = attrgetter("rank")


@final
class SchedulerStatus(Struct, frozen=True):
    running: int
    waiting: int
    """Parked ones included."""
    blocks_total: int
    """Of the first KV group, as all block counts."""
    blocks_free: int
    blocks_evictable: int
    """They hold cached KV, and go when room is needed."""
    blocks_protected: int
    preemptions: int
    query_tokens: int
    """Prompt tokens of all sequences that began."""
    hit_tokens: int
    """Those of them that were in the cache."""
    output_ratio: float
    """The forecast: the part of its allowed output that a sequence is expected to use."""


@final
class _Fence:
    """Blocks of an epoch that is over, until its rows in flight have retired."""

    __slots__ = ("freed", "rows", "tables")

    def __init__(self, rows: int, tables: Tables, freed: list[int]) -> None:
        self.rows = rows
        self.tables = tables
        self.freed = freed


@final
class _Step:
    """A plan in the making."""

    __slots__ = ("budget", "grown", "is_short", "ones", "preempted", "reserved", "rows")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        """Less the tokens of `rows`."""
        self.ones: list[Row] = []
        """Rows of one token."""
        self.rows: list[Row] = []
        self.grown: list[Sequence] = []
        self.preempted: list[Sequence] = []
        self.is_short = False
        """Somebody who runs got no room."""
        self.reserved: list[int] | None = None
        """Blocks a group that running sequences are expected to take; None: not counted yet."""

    @property
    def left(self) -> int:
        return self.budget - len(self.ones)

    def put(self, row: Row) -> None:
        if row.count == 1:
            self.ones.append(row)
        else:
            self.rows.append(row)
            self.budget -= row.count

    def drop(self, seq: Sequence) -> None:
        """Take back the row of a sequence that gives way, if it has one."""
        for rows in (self.ones, self.rows):
            for index, row in enumerate(rows):
                if row.seq is seq:
                    del rows[index]
                    self.budget += row.count if row.count > 1 else 0
                    seq.flying -= 1
                    return


@final
class Scheduler:
    def __init__(self, limits: Limits, kv: BlockTables, forecast: Forecast | None = None) -> None:
        """Raises ValueError when the limits cannot go together."""
        if kv.block_size != limits.block_size:
            raise ValueError(f"blocks of {limits.block_size} and of {kv.block_size} tokens")
        if min(limits.max_batch_size, limits.max_batch_tokens, limits.max_model_len) < 1:
            raise ValueError(f"wanted limits of 1 at least, got {limits}")
        self.limits = limits
        self.kv = kv
        self.forecast = forecast or Forecast()
        self.preemptions = self.query_tokens = self.hit_tokens = 0
        self._running = Ranked()
        self._waiting = Ranked()
        self._parked: set[Sequence] = set()
        self._holders: set[Sequence] = set()
        """Not running, and yet with blocks: parked ones, and those that were unparked."""
        self._promises = Promises(limits.block_size)
        self._fences: dict[tuple[Sequence, int], _Fence] = {}
        self._deadlines: list[tuple[float, int, Sequence]] = []
        self._arrivals = 0
        self._steps = 0
        cap = limits.long_prefill_tokens or limits.max_batch_tokens
        self._chunk = min(cap, limits.max_batch_tokens)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences that wait or are parked."""
        return len(self._waiting) + len(self._parked)

    @property
    def is_idle(self) -> bool:
        """Nothing to schedule now, and nothing that is still to retire."""
        return not (self._running.items or self._waiting.items or self._parked or self._fences)

    def status(self) -> SchedulerStatus:
        pool = self.kv.pools[0]
        return SchedulerStatus(
            running=self.running,
            waiting=self.waiting,
            blocks_total=pool.total,
            blocks_free=pool.free,
            blocks_evictable=pool.evictable,
            blocks_protected=pool.protected,
            preemptions=self.preemptions,
            query_tokens=self.query_tokens,
            hit_tokens=self.hit_tokens,
            output_ratio=self.forecast.ratio,
        )

    def can_take(self, count: int) -> bool:
        """Whether so many more sequences would find a place in the batch or in the queue."""
        places = max(self.limits.max_batch_size - self.running, 0)
        return self.waiting + count <= self.limits.max_waiting + places

    def add(self, seq: Sequence) -> str:
        """Let a new sequence wait. Returns why it can never run; "": it was taken."""
        limits, known = self.limits, len(seq.tokens)
        # Why less one: the last id is sampled, and never computed.
        most = seq.max_tokens - 1
        if not known:
            return "the job has no tokens: send one at least"
        if most < known:
            return f"max_tokens of {seq.max_tokens} leaves no output after {known} tokens"
        if most > limits.max_model_len:
            return (
                f"the job may need {most} tokens of context, the engine has"
                f" {limits.max_model_len}: lower max_tokens, or raise max_model_len"
            )
        reason = self.kv.refusal(most, self._chunk)
        if reason:
            return reason
        if seq.order < 0:
            seq.order = self._arrivals
            seq.rank = (-seq.priority, seq.order)
        self._arrivals += 1
        self._waiting.add(seq)
        if seq.deadline is not None:
            heapq.heappush(self._deadlines, (seq.deadline, self._arrivals, seq))
        return ""

    def park(self, seq: Sequence, *, keep: bool = True) -> None:
        """Do not schedule it before `unpark`. It keeps the blocks that it has, until others need
        them, or where `keep` is false gives them back; the latter works on a parked one too."""
        if seq.state is State.OVER:
            return
        if seq.state is State.RUNNING:
            self._stop(seq)
            self._holders.add(seq)
        elif seq.state is State.WAITING:
            self._waiting.remove(seq)
        seq.state = State.PARKED
        self._parked.add(seq)
        if not keep and seq in self._holders:
            self._evict(seq)

    def unpark(self, seq: Sequence) -> None:
        if seq.state is State.PARKED:
            self._parked.remove(seq)
            seq.state = State.WAITING
            self._waiting.add(seq)

    def abort(self, seq: Sequence) -> None:
        """It is over, in whatever state and for whatever reason (also because it is finished).
        What steps in flight still bring for it is void. A second call does nothing."""
        match seq.state:
            case State.OVER:
                return
            case State.RUNNING:
                self._stop(seq)
            case State.WAITING:
                self._waiting.remove(seq)
            case State.PARKED:
                self._parked.remove(seq)
        self._holders.discard(seq)
        seq.state = State.OVER
        self._give_back(seq)

    def expired(self, now: float) -> tuple[Sequence, ...]:
        """Sequences whose deadline has come, each told once: abort them."""
        found: list[Sequence] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            seq = heapq.heappop(self._deadlines)[2]
            if seq.state is not State.OVER:
                found.append(seq)
        return tuple(found)

    def schedule(self, now: float) -> Plan:
        """The next step, which counts as in flight from here on. Its rows may be none."""
        self.kv.tick(now)
        self.forecast.decay()
        step = _Step(self.limits.max_batch_tokens)
        prefills = self._decode(step)
        for seq in prefills:
            if step.left < 1:
                break
            if seq.state is State.RUNNING:
                end = self._end(step, seq, seq.computed)
                if self._has_room(step, seq, end):
                    self._advance(step, seq, end)
        if not (step.preempted or step.is_short) and self._waiting.items:
            self._admit(step)
        self._steps += 1
        return Plan(
            self._steps,
            (*step.ones, *step.rows),
            len(step.ones),
            self.limits.max_batch_tokens - step.left,
            tuple(step.preempted),
            tuple(seq for seq in step.grown if seq.tables),
        )

    def retire(self, row: Row, ids: Many[int] = ()) -> bool:
        """A row's step is done; `ids`: what it brought, where it samples: one id, or one more than
        drafts were accepted, or any that the loop puts in their place. Without `ids` the loop must
        end the sequence. False: the row is void, the sequence was preempted or is over."""
        seq = row.seq
        if row.epoch != seq.epoch:
            self._unfence(seq, row.epoch)
            return False
        seq.flying -= 1
        written = row.start + row.count
        if row.samples:
            seq.pending -= 1
            if len(ids) == 1 and not row.drafts:
                seq.tokens.append(ids[0])
            else:
                written -= self._settle(row, ids)
        if written >= seq.full_at:
            stored = seq.stored
            self.kv.store(seq, written)
            self._promises.keep(seq, stored)
        return True

    def _decode(self, step: _Step) -> list[Sequence]:
        """Rows of those that only lack their last token; returns those that lack more.

        Strategy: this loop is the whole cost of most steps, so what is rare is a call."""
        prefills: list[Sequence] = []
        ones = step.ones
        for seq in self._running.items:
            start, target = seq.computed, seq.target
            if target - start != 1:
                if target > start:
                    prefills.append(seq)
                continue
            if len(ones) >= step.budget:
                break
            if seq.pending:
                if seq.needs_feedback or seq.drafting:
                    continue
            elif seq.drafts:
                self._draft(step, seq)
                continue
            if target > seq.quick and (
                target >= seq.max_tokens or not self._has_room(step, seq, target)
            ):
                continue
            seq.computed = target
            seq.target = target + 1
            seq.pending += 1
            seq.flying += 1
            ones.append(Row(seq, seq.epoch, start, 1, (), True))
        return prefills

    def _draft(self, step: _Step, seq: Sequence) -> None:
        """A row that checks drafts: as many as budget, length and free blocks allow."""
        start, target = seq.computed, seq.target
        if target >= seq.max_tokens:
            return
        longest = min(step.left, self._chunk, seq.max_tokens - target) - 1
        drafts = tuple(seq.drafts[: max(longest, 0)])
        held = seq.room
        if self.kv.grow(seq, target + len(drafts)):
            if seq.room > held:
                step.grown.append(seq)
        elif self._has_room(step, seq, target):
            drafts = ()
        else:
            return
        seq.drafts = []
        seq.drafting = len(drafts)
        seq.computed = target + len(drafts)
        seq.target = seq.computed + 1
        seq.pending += 1
        seq.flying += 1
        step.put(Row(seq, seq.epoch, start, 1 + len(drafts), drafts, True))

    def _advance(self, step: _Step, seq: Sequence, end: int) -> None:
        """A row up to `end` tokens, for which there is room."""
        start, samples = seq.computed, end == seq.target
        seq.computed = end
        seq.flying += 1
        if samples:
            seq.target = end + 1
            seq.pending += 1
        step.put(Row(seq, seq.epoch, start, end - start, (), samples))

    def _end(self, step: _Step, seq: Sequence, start: int) -> int:
        """Where its next chunk ends."""
        return start + min(seq.target - start, self._chunk, step.left)

    def _has_room(self, step: _Step, seq: Sequence, tokens: int) -> bool:
        """Make room for a running sequence; False: it has to wait for a step."""
        if tokens <= seq.room:
            return True
        while not self.kv.grow(seq, tokens):
            if self._is_coming(seq, tokens) or not self._yield_blocks(step, seq):
                step.is_short = True
                return False
        step.grown.append(seq)
        return True

    def _is_coming(self, seq: Sequence, tokens: int) -> bool:
        """Whether steps in flight will give back enough when they retire."""
        if not self._fences:
            return False
        need = -(-(tokens - seq.room) // self.limits.block_size)
        return all(
            pool.available + sum(fence.freed[index] for fence in self._fences.values()) >= need
            for index, pool in enumerate(self.kv.pools)
        )

    def _yield_blocks(self, step: _Step, seq: Sequence) -> bool:
        """Take the blocks of one that does not run, or else of the last in rank. False: nobody
        gives way to `seq`."""
        holders = self._holders
        if holders:
            victim = max(holders, key=_rank)
            self._evict(victim)
        else:
            victim = self._running.items[-1]
            if victim is seq:
                # Why it waits, and does not give way to itself: if anybody before it needs its
                # blocks he takes them, and if nobody does, its KV is spared.
                return False
            self._preempt(step, victim)
        step.preempted.append(victim)
        return True

    def _preempt(self, step: _Step, seq: Sequence) -> None:
        running = self._running.items
        made = sum(other.output_tokens for other in running)
        allowed = sum(other.max_tokens - other.prompt_tokens for other in running)
        self.forecast.jump(made, allowed, len(running))
        step.drop(seq)
        self._stop(seq)
        seq.state = State.WAITING
        self._waiting.add(seq)
        self._evict(seq)

    def _evict(self, seq: Sequence) -> None:
        """Take the blocks of a sequence that is not running, and is not over."""
        self._holders.discard(seq)
        self._give_back(seq)
        seq.preemptions += 1
        self.preemptions += 1

    def _stop(self, seq: Sequence) -> None:
        self._running.remove(seq)
        self._promises.withdraw(seq)

    def _give_back(self, seq: Sequence) -> None:
        """Its blocks go, those that a step in flight uses when it retires; its epoch ends."""
        tables = self.kv.detach(seq)
        if seq.flying:
            freed = self.kv.freed_by(tables) or [0] * len(self.kv.pools)
            self._fences[seq, seq.epoch] = _Fence(seq.flying, tables, freed)
        else:
            self.kv.release(tables)
        seq.epoch += 1
        seq.flying = seq.pending = seq.drafting = 0
        seq.drafts = []
        seq.target = len(seq.tokens)

    def _unfence(self, seq: Sequence, epoch: int) -> None:
        fence = self._fences[seq, epoch]
        fence.rows -= 1
        if not fence.rows:
            del self._fences[seq, epoch]
            self.kv.release(fence.tables)

    def _settle(self, row: Row, ids: Many[int]) -> int:
        """Take what a row brought, and take back drafts; returns how many were taken back."""
        seq, drafts = row.seq, row.drafts
        if seq.pending and len(ids) != 1:
            raise ValueError(f"wanted one id while a later step is in flight, got {len(ids)}")
        accepted = 0
        for draft, got in zip(drafts, ids[:-1], strict=False):
            if draft != got:
                break
            accepted += 1
        if drafts:
            seq.drafting = 0
        seq.tokens.extend(ids)
        seq.computed -= len(drafts) - accepted
        seq.target = len(seq.tokens) + seq.pending
        return len(drafts) - accepted

    def _admit(self, step: _Step) -> None:
        """Start those that wait, in order, while budget, places and blocks last."""
        waiting, index = self._waiting.items, 0
        while (
            index < len(waiting)
            and step.left > 0
            and len(self._running) < self.limits.max_batch_size
        ):
            seq = waiting[index]
            if seq in self._holders:
                self._resume(step, seq)
                continue
            hit = self.kv.find(seq)
            if self._promises.is_worth_a_wait(seq, hit.blocks):
                index += 1
                continue
            end = self._end(step, seq, hit.blocks * self.limits.block_size)
            if not self._affords(step, seq, hit, end):
                if not self._running.items and self._holders and not self._fences:
                    # Why: nobody who runs will ever give a block back.
                    victim = max(self._holders, key=_rank)
                    self._evict(victim)
                    step.preempted.append(victim)
                return
            self._start(step, seq, hit, end)

    def _start(self, step: _Step, seq: Sequence, hit: Hit, end: int) -> None:
        self._waiting.remove(seq)
        self.kv.open(seq, hit, end)
        if not seq.was_admitted:
            seq.was_admitted = True
            seq.cached_tokens = min(seq.computed, seq.prompt_tokens)
            self.query_tokens += seq.prompt_tokens
            self.hit_tokens += seq.cached_tokens
        self._run(seq)
        step.grown.append(seq)
        if step.reserved is not None:
            for group, blocks in enumerate(self._future(seq)):
                step.reserved[group] += blocks
        self._advance(step, seq, end)

    def _resume(self, step: _Step, seq: Sequence) -> None:
        """It was parked and still has its blocks."""
        self._waiting.remove(seq)
        self._holders.remove(seq)
        self._run(seq)
        step.reserved = None
        step.grown.append(seq)
        if seq.target == seq.computed or seq.target >= seq.max_tokens:
            return
        if seq.pending and (seq.needs_feedback or seq.drafting):
            return
        end = self._end(step, seq, seq.computed)
        if self.kv.grow(seq, end):
            self._advance(step, seq, end)

    def _run(self, seq: Sequence) -> None:
        seq.state = State.RUNNING
        self._running.add(seq)
        self._promises.make(seq)

    def _affords(self, step: _Step, seq: Sequence, hit: Hit, end: int) -> bool:
        """Whether there are blocks for its first chunk, and, unless it would be alone, for all
        that it and those that run are expected to take."""
        pools = self.kv.pools
        first = self.kv.cost(hit, end)
        if any(pool.available < cost for pool, cost in zip(pools, first, strict=True)):
            return False
        if not self._running.items:
            return True
        if step.reserved is None:
            step.reserved = [0] * len(pools)
            for other in self._running.items:
                for group, blocks in enumerate(self._future(other)):
                    step.reserved[group] += blocks
        for group, blocks in enumerate(self._future(seq)):
            table = hit.tables[group]
            shared = len(table) - table.count(0) - hit.idle[group]
            if step.reserved[group] + blocks - shared > pools[group].available:
                return False
        return True

    def _future(self, seq: Sequence) -> list[int]:
        """Blocks a group that it is expected to take yet."""
        known, made = len(seq.tokens), seq.output_tokens
        expected = None if seq.expected_tokens is None else seq.expected_tokens - made
        output = self.forecast.output(seq.max_tokens - 1 - known, expected)
        return self.kv.future(seq, known + max(output, 0), self._chunk)
