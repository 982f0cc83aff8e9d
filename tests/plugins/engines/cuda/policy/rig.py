"""A small engine without a network: plans in, made-up ids out. What the policy's tests share.

The id after a prefix depends on the prefix alone, so that whatever the scheduler does, each
sequence must end with the same ids as when it runs alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence as Many

from tokenwire.core import blocks
from tokenwire.core.tokens import BlockRemoved, BlockStored
from tokenwire.plugins.engines.cuda.policy.forecast import Forecast
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec, Limits
from tokenwire.plugins.engines.cuda.policy.plan import Plan, Row
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State

SIZE = 4
ROOT = blocks.root("model:test|dtype:bf16|block:4")


def next_id(tokens: Many[int]) -> int:
    """What the made-up model says after these tokens."""
    return (sum(tokens) * 7 + len(tokens)) % 97


def answer(prompt: Many[int], count: int) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_id(tokens))
    return tokens[len(prompt) :]


class Rig:
    def __init__(
        self,
        blocks_: int = 100,
        *,
        windows: Many[int] = (0,),
        size: int = SIZE,
        depth: int = 0,
        eager: bool = True,
        pools: Many[int] = (),
        **limits: int,
    ) -> None:
        """`blocks_`: a group has, without the null block. `depth`: steps that are in flight when
        the next is scheduled. `eager`: admission does not look ahead."""
        fields = {
            "max_batch_size": 16,
            "max_batch_tokens": 64,
            "block_size": size,
            "max_model_len": 256,
            **limits,
        }
        sizes = pools or [blocks_] * len(windows)
        groups = [
            GroupSpec(count + 1, window) for count, window in zip(sizes, windows, strict=True)
        ]
        self.kv = BlockTables(groups, size, ROOT)
        self.kv.log.is_heard = True
        forecast = Forecast(0.0, 0.0) if eager else Forecast()
        self.scheduler = Scheduler(Limits(**fields), self.kv, forecast)
        self.depth = depth
        self.flight: deque[Plan] = deque()
        self.known: list[Sequence] = []
        self.events: set[str] = set()
        self.now = 0.0

    def add(self, prompt: Many[int] | int, output: int = 8, **fields) -> Sequence:
        ids = range(prompt) if isinstance(prompt, int) else prompt
        fields.setdefault("max_tokens", len(ids) + len(fields.get("resume", ())) + output)
        seq = Sequence(f"job{len(self.known)}", ids, **fields)
        reason = self.scheduler.add(seq)
        assert reason == "", reason
        self.known.append(seq)
        return seq

    def schedule(self) -> Plan:
        self.now += 1
        plan = self.scheduler.schedule(self.now)
        check_plan(self.scheduler, plan)
        self.flight.append(plan)
        self.check()
        return plan

    def brings(self, row: Row) -> list[int]:
        """What the model says to a row: as many drafts as it agrees with, and one id more."""
        if not row.samples:
            return []
        tokens, ids = list(row.seq.tokens[: row.start + 1]), []
        for draft in (*row.drafts, None):
            ids.append(next_id(tokens))
            tokens.append(ids[-1])
            if draft != ids[-1]:
                break
        return ids

    def retire(self) -> Plan:
        """The oldest step in flight; ends those that are at their length."""
        plan = self.flight.popleft()
        for row in plan.rows:
            seq = row.seq
            is_current = row.epoch == seq.epoch
            if row.samples and is_current and not row.drafts:
                ids = [next_id(seq.tokens)]
            else:
                ids = self.brings(row) if is_current else [0]
            assert self.scheduler.retire(row, ids) == is_current
            if is_current and len(seq.tokens) >= seq.max_tokens:
                self.scheduler.abort(seq)
        self.check()
        return plan

    def step(self) -> Plan:
        plan = self.schedule()
        while len(self.flight) > self.depth:
            self.retire()
        return plan

    def run(self, steps: int = 1500) -> int:
        """Until nothing is left; returns how many steps it took."""
        for done in range(steps):
            if self.scheduler.is_idle and not any(plan.rows for plan in self.flight):
                self.flight.clear()
                return done
            self.step()
        left = [seq for seq in self.known if seq.state is not State.OVER]
        fields = ("state", "computed", "target", "pending", "flying", "room", "max_tokens")
        shown = [{name: getattr(seq, name) for name in fields} for seq in left]
        raise AssertionError(f"not idle after {steps} steps: {shown}")

    def land(self) -> None:
        while self.flight:
            self.retire()

    def hear(self) -> None:
        for event in self.kv.log.take():
            names = set(event.hashes)
            assert len(names) == len(event.hashes)
            match event:
                case BlockStored(parent=parent):
                    assert not names & self.events
                    assert parent == "" or len(parent) == 64
                    self.events |= names
                case BlockRemoved():
                    assert names <= self.events
                    self.events -= names
        assert self.events == set(self.kv.snapshot().hashes)

    def check(self) -> None:
        """The laws that hold between any two calls."""
        self.hear()
        fences = [fence.tables for fence in self.scheduler._board._fences.values()]
        for group, pool in enumerate(self.kv.pools):
            check_pool(pool)
            uses = Counter[int]()
            for tables in [*(seq.tables for seq in self.known), *fences]:
                uses.update(block for block in (tables[group] if tables else ()) if block)
            assert {block: count for block, count in enumerate(pool.refs) if count} == uses
        for seq in self.known:
            check_sequence(self.kv, seq)
        check_sharing(self.kv, [seq for seq in self.known if seq.tables])


def check_pool(pool) -> None:
    assert pool.free + pool.evictable + pool.protected == pool.total
    assert min(pool.refs) >= 0
    assert pool.refs[0] == 0
    listed, block = [], pool._next[0]
    while block:
        listed.append(block)
        assert pool._previous[pool._next[block]] == block
        block = pool._next[block]
    idle = {*listed, *pool._pinned}
    assert len(idle) == len(listed) + len(pool._pinned) == pool.available
    assert idle == {block for block in range(1, pool.total + 1) if not pool.refs[block]}
    named = {block for block in range(1, pool.total + 1) if pool.name_of(block) is not None}
    assert len(idle & named) == pool.evictable
    found = Counter(pool.name_of(block) for block in named)
    assert set(found) == set(pool.names())
    for name, count in found.items():
        assert pool.name_of(pool.find(name)) == name
        assert count == 1 + len(pool._twins.get(name, ()))


def check_sequence(kv: BlockTables, seq: Sequence) -> None:
    assert len({len(table) for table in seq.tables}) <= 1
    assert seq.computed <= seq.room == (len(seq.tables[0]) * kv.block_size if seq.tables else 0)
    assert len(seq.tables[0]) <= -(-(seq.max_tokens - 1) // kv.block_size) if seq.tables else True
    assert seq.computed <= seq.target
    assert seq.pending >= 0
    assert seq.flying >= 0
    if seq.state is State.OVER:
        assert not seq.tables
        assert not seq.flying
        assert not seq.pending
    for group, table in zip(kv.groups, seq.tables, strict=False):
        if group.window:
            first = table.count(0)
            assert not any(table[:first])
            assert first * kv.block_size <= max(seq.computed - group.window + 1, 0)
        else:
            assert all(table)


def check_sharing(kv: BlockTables, alive: Many[Sequence]) -> None:
    """No block in two tables, unless it is the same block of the same prefix."""
    for group in range(len(kv.groups)):
        owners: dict[int, tuple[int, bytes | None]] = {}
        for seq in alive:
            kv.identify(seq)
            for index, block in enumerate(seq.tables[group]):
                if not block:
                    continue
                name = seq.hashes[index] if index < len(seq.hashes) else None
                if block in owners:
                    assert name is not None
                    assert owners[block] == (index, name)
                owners[block] = (index, name)


def check_plan(scheduler: Scheduler, plan: Plan) -> None:
    limits = scheduler.limits
    counts = [row.count for row in plan.rows]
    assert plan.tokens == sum(counts) <= limits.max_batch_tokens
    assert len(plan.rows) <= limits.max_batch_size
    assert scheduler.running <= limits.max_batch_size
    assert len({row.seq for row in plan.rows}) == len(plan.rows)
    assert all(count == 1 for count in counts[: plan.decode_rows])
    assert all(count > 1 for count in counts[plan.decode_rows :])
    if limits.long_prefill_tokens:
        assert max(counts, default=0) <= limits.long_prefill_tokens
    for row in plan.rows:
        seq = row.seq
        assert seq.state is State.RUNNING
        assert row.epoch == seq.epoch
        assert row.start + row.count == seq.computed <= seq.room
        assert seq.computed < seq.target
        assert not row.samples or seq.computed == seq.target - 1
        assert row.samples or not row.drafts
    assert all(seq.tables for seq in plan.grown)
    assert not set(plan.preempted) & {row.seq for row in plan.rows}
