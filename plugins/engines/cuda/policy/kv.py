"""Block tables over the pools of all KV groups: finds, grows, names and gives back the blocks of
sequences. Decides nothing about who runs.

All tables of a sequence are equally long. A table's entry is 0 where its group's window has left
the block behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Many
from typing import TypeAlias, final

from msgspec import Struct

from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import BlockSnapshot
from tokenwire.plugins.engines.cuda.policy import groups as rules
from tokenwire.plugins.engines.cuda.policy.events import EventLog
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec
from tokenwire.plugins.engines.cuda.policy.pool import BlockPool
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence

__all__ = ("BlockTables", "Hit", "Tables")

Tables: TypeAlias = list[list[int]]


@final
class Hit(Struct, frozen=True):
    """What of a sequence is in the cache."""

    blocks: int
    tables: tuple[list[int], ...]
    """One a group: its first `blocks` entries."""
    idle: tuple[int, ...]
    """One a group: how many of them nobody holds yet."""


@final
class BlockTables:
    def __init__(self, groups: Many[GroupSpec], block_size: int, root: bytes) -> None:
        """`root`: `core.blocks.root` of all that changes KV values. Events tell of the first
        group."""
        if not groups:
            raise ValueError("wanted a KV group at least, got none: name the layers' windows")
        self.groups = tuple(groups)
        self.block_size = block_size
        self.log = EventLog()
        self.pools = tuple(
            BlockPool(group.blocks, None if index else self.log)
            for index, group in enumerate(self.groups)
        )
        self._root = root
        self._has_windows = any(group.window for group in self.groups)

    def refusal(self, tokens: int, chunk: int) -> str:
        """Why `tokens` tokens, computed `chunk` a step at most, never fit; "": they do."""
        for group, pool in zip(self.groups, self.pools, strict=True):
            most = rules.most_blocks(group.window, tokens, chunk, self.block_size)
            if most > pool.total:
                return (
                    f"the job may need {most} KV blocks for {tokens} tokens, the pool has"
                    f" {pool.total}: lower max_tokens, or give the engine more KV memory"
                )
        return ""

    def identify(self, seq: Sequence) -> None:
        """Hash its full blocks of known ids, those that are not hashed yet."""
        size, have = self.block_size, len(seq.hashes)
        full = len(seq.tokens) // size
        if full <= have:
            return
        parent = seq.hashes[-1] if have else self._root
        ids = TokenIds(seq.tokens[have * size : full * size])
        if full == have + 1:
            # Why apart: it is what decoding does, and takes half as long as a chain of one.
            extra = seq.extras[have] if have < len(seq.extras) else b""
            seq.hashes.append(blocks.block(parent, ids, extra))
        else:
            seq.hashes.extend(blocks.chain(parent, ids, size, seq.extras[have:]))

    def find(self, seq: Sequence) -> Hit:
        """Its longest hit that leaves a token to compute."""
        self.identify(seq)
        limit = (len(seq.tokens) - 1) // self.block_size if seq.reads_cache else 0
        hashes = seq.hashes
        searches = [
            (group.window, _search(pool, hashes))
            for group, pool in zip(self.groups, self.pools, strict=True)
        ]
        hit = rules.common_hit(searches, limit, self.block_size) if limit else 0
        tables, idle = [], []
        for group, pool in zip(self.groups, self.pools, strict=True):
            first = rules.first_needed(group.window, hit * self.block_size, self.block_size)
            table = [0] * first + [pool.find(name) for name in hashes[first:hit]]
            tables.append(table)
            idle.append(sum(1 for block in table if block and not pool.refs[block]))
        return Hit(hit, tuple(tables), tuple(idle))

    def cost(self, hit: Hit, tokens: int) -> list[int]:
        """Blocks a group that `open` takes from those available."""
        fresh = -(-tokens // self.block_size) - hit.blocks
        return [fresh + idle for idle in hit.idle]

    def open(self, seq: Sequence, hit: Hit, tokens: int) -> None:
        """Give it the blocks of a hit, and room for `tokens` tokens in all. Hold before taking:
        its own room must not come from what it hit."""
        fresh = -(-tokens // self.block_size) - hit.blocks
        seq.tables = []
        for pool, found in zip(self.pools, hit.tables, strict=True):
            pool.hold(found)
            seq.tables.append(found + pool.take(fresh))
        seq.computed = hit.blocks * self.block_size
        seq.stored = hit.blocks
        self._measure(seq)

    def grow(self, seq: Sequence, tokens: int) -> bool:
        """Room for `tokens` tokens in all; False, and nothing is done: there is none."""
        need = -(-(tokens - seq.room) // self.block_size)
        if need <= 0:
            return True
        for pool in self.pools:
            if pool.available < need:
                return False
        for pool, table in zip(self.pools, seq.tables, strict=True):
            table.extend(pool.take(need))
        self._measure(seq)
        return True

    def store(self, seq: Sequence, written: int) -> None:
        """Its first `written` tokens are in the KV cache: name the blocks that they fill, and let
        go of those that no window reaches from there."""
        size, stored = self.block_size, seq.stored
        full = written // size
        if full > stored:
            self.identify(seq)
            names = seq.hashes[stored:full]
            parent = seq.hashes[stored - 1] if stored else b""
            for pool, table in zip(
                self.pools, () if seq.is_forgotten else seq.tables, strict=False
            ):
                pool.store(table[stored:full], names, parent)
            seq.stored = full
            seq.full_at = (full + 1) * size
        if self._has_windows:
            self._trim(seq, written)

    def forget(self, seq: Sequence) -> None:
        """Nobody is to find what is in its blocks, nor what it may still put into them."""
        for pool, table in zip(self.pools, seq.tables, strict=False):
            pool.forget(table)
        seq.is_forgotten = True

    def detach(self, seq: Sequence) -> Tables:
        """Take its tables from it, for `release` once nothing in flight uses them."""
        tables, seq.tables = seq.tables, []
        for pin in seq.pins if tables else ():
            if pin.ttl_s is not None:
                count = min(pin.tokens // self.block_size, seq.stored)
                for pool, table in zip(self.pools, tables, strict=True):
                    pool.pin(table[:count], float(pin.ttl_s))
        seq.computed = seq.stored = seq.room = seq.quick = seq.full_at = 0
        return tables

    def hold(self, tables: Tables) -> Tables:
        """A copy of the tables whose blocks stay until `release`: for a transfer or a lease."""
        for pool, table in zip(self.pools, tables, strict=True):
            pool.hold(table)
        return [list(table) for table in tables]

    def release(self, tables: Tables) -> None:
        for pool, table in zip(self.pools, tables, strict=False):
            pool.release(table)

    def freed_by(self, tables: Tables) -> list[int]:
        """Blocks a group that `release` would make available."""
        return [
            sum(1 for block in table if block and pool.refs[block] == 1)
            for pool, table in zip(self.pools, tables, strict=False)
        ]

    def future(self, seq: Sequence, tokens: int, chunk: int) -> list[int]:
        """Blocks a group that it will yet take on its way to `tokens` tokens."""
        found = []
        tables: Iterable[list[int]] = seq.tables or ([] for _ in self.groups)
        for group, table in zip(self.groups, tables, strict=True):
            most = rules.most_blocks(group.window, tokens, chunk, self.block_size)
            held = len(table) - (table.count(0) if group.window else 0)
            found.append(max(most - held, 0))
        return found

    def tick(self, now: float) -> None:
        for pool in self.pools:
            pool.tick(now)

    def reset(self) -> bool:
        """Forget all cached blocks; False, and nothing is done, while one is held."""
        if any(pool.protected for pool in self.pools):
            return False
        return all(pool.reset() for pool in self.pools)

    def snapshot(self) -> BlockSnapshot:
        """What the first group holds, as of the last event."""
        return self.log.snapshot(self.pools[0].names())

    def _measure(self, seq: Sequence) -> None:
        seq.room = len(seq.tables[0]) * self.block_size
        seq.quick = min(seq.room, seq.max_tokens - 1)
        seq.full_at = (seq.stored + 1) * self.block_size

    def _trim(self, seq: Sequence, position: int) -> None:
        for group, pool, table in zip(self.groups, self.pools, seq.tables, strict=True):
            last = rules.first_needed(group.window, position, self.block_size)
            first = last
            while first and table[first - 1]:
                first -= 1
            if first < last:
                pool.release(table[first:last])
                table[first:last] = [0] * (last - first)


def _search(pool: BlockPool, hashes: Many[bytes]) -> Callable[[int], bool]:
    find = pool.find
    return lambda index: find(hashes[index]) != 0
