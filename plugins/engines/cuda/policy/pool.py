"""The KV blocks of one group: who holds them, what is in them, which goes next. Knows no sequence.

A block is held (somebody counts on it), or free: without a name (nothing in it is worth keeping),
or evictable (named by its hash, found by it, and kept until its room is needed). Free blocks hang
in one doubly linked list, next to go first; block 0 is its two ends and is never handed out.
One count a block serves tables, transfers and leases alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import final

from tokenwire.plugins.engines.cuda.policy.events import EventLog

__all__ = ("BlockPool",)

SLACK = 64
"""Entries that a heap may have beyond twice those that count."""


@final
class BlockPool:
    def __init__(self, blocks: int, log: EventLog | None = None) -> None:
        """`blocks` with the null block; raises ValueError when that leaves none."""
        if blocks < 2:
            raise ValueError(f"a pool wants 2 blocks at least, one is the null block: got {blocks}")
        self.total = blocks - 1
        self.refs = [0] * blocks
        self._log = log
        self._next = [*range(1, blocks), 0]
        self._previous = [blocks - 1, *range(blocks - 1)]
        self._names: list[bytes | None] = [None] * blocks
        self._by_name: dict[bytes, int] = {}
        self._twins: dict[bytes, list[int]] = {}
        """Further blocks of the same name, which two sequences computed side by side."""
        self.available = self.total
        """Blocks that could be handed out: free or evictable."""
        self.evictable = 0
        self._now = 0.0
        self._ttls: dict[int, float] = {}
        self._pinned: dict[int, float] = {}
        """Evictable blocks that go last, until when; they do not hang in the list."""
        self._expiries: list[tuple[float, int]] = []

    @property
    def free(self) -> int:
        """Blocks with nothing in them."""
        return self.available - self.evictable

    @property
    def protected(self) -> int:
        return self.total - self.available

    def find(self, name: bytes) -> int:
        """A block of this name; 0: none."""
        return self._by_name.get(name, 0)

    def names(self) -> tuple[bytes, ...]:
        return tuple(self._by_name)

    def name_of(self, block: int) -> bytes | None:
        return self._names[block]

    def take(self, count: int) -> list[int]:
        """Blocks for somebody to write, held once; what was in them is forgotten."""
        if count > self.available:
            raise ValueError(f"wanted {count} blocks, {self.available} are free: ask before taking")
        after, names, gone, taken = self._next, self._names, list[bytes](), list[int]()
        for _ in range(count):
            if not after[0]:
                self._unpin(min(self._pinned, key=self._pinned.__getitem__))
            block = after[0]
            self._unlink(block)
            self.refs[block] = 1
            name = names[block]
            if name is not None:
                self.evictable -= 1
                self._forget(block, name, gone)
            taken.append(block)
        self.available -= count
        if gone and self._log is not None:
            self._log.removed(gone)
        return taken

    def hold(self, blocks: Iterable[int]) -> None:
        """Count on blocks that are held already, or evictable; the null block is passed over."""
        refs = self.refs
        for block in blocks:
            if not block:
                continue
            if not refs[block]:
                self.available -= 1
                self.evictable -= self._names[block] is not None
                if self._pinned.pop(block, None) is None:
                    self._unlink(block)
            refs[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """Count on them no more; those that nobody counts on can go, the last given first."""
        refs = self.refs
        for block in reversed(blocks):
            if not block:
                continue
            refs[block] -= 1
            if refs[block] > 0:
                continue
            if refs[block] < 0:
                refs[block] = 0
                raise ValueError(f"block {block} was released once too often")
            self.available += 1
            if self._names[block] is None:
                self._link(block, 0)
                continue
            self.evictable += 1
            if not self._pin_idle(block):
                self._link(block, self._previous[0])

    def store(self, blocks: Sequence[int], names: Sequence[bytes], parent: bytes) -> None:
        """Name held blocks, a run of one chain after `parent` (b"": its start), so that others
        find them."""
        run: list[bytes] = []
        for block, name in zip(blocks, names, strict=True):
            self._names[block] = name
            if name not in self._by_name:
                self._by_name[name] = block
                run.append(name)
                continue
            self._twins.setdefault(name, []).append(block)
            self._tell_stored(run, parent)
            run, parent = [], name
        self._tell_stored(run, parent)

    def forget(self, blocks: Iterable[int]) -> None:
        """What is in these held blocks is not to be found again: they are as if unnamed."""
        gone: list[bytes] = []
        for block in blocks:
            name = self._names[block]
            if name is not None:
                self._forget(block, name, gone)
        if gone and self._log is not None:
            self._log.removed(gone)

    def pin(self, blocks: Iterable[int], ttl: float) -> None:
        """Let these blocks go last for `ttl` seconds after their last use, and half the pool at
        most: a hint, which refuses nobody a block."""
        for block in blocks:
            if block:
                self._ttls[block] = max(ttl, self._ttls.get(block, 0.0))

    def tick(self, now: float) -> None:
        """The time, for pins; those that are over go back into the list."""
        self._now = now
        expiries = self._expiries
        while expiries and expiries[0][0] <= now:
            expiry, block = heapq.heappop(expiries)
            if self._pinned.get(block) == expiry:
                self._unpin(block)

    def reset(self) -> bool:
        """Forget what is in all blocks (the weights changed); False, and nothing is done, while
        somebody counts on one."""
        if self.protected:
            return False
        for block in list(self._pinned):
            self._unpin(block)
        if self._by_name and self._log is not None:
            self._log.removed(tuple(self._by_name))
        self._by_name.clear()
        self._twins.clear()
        self._ttls.clear()
        self._names = [None] * len(self._names)
        self.evictable = 0
        return True

    def _tell_stored(self, run: Sequence[bytes], parent: bytes) -> None:
        if run and self._log is not None:
            self._log.stored(run, parent)

    def _pin_idle(self, block: int) -> bool:
        ttl = self._ttls.get(block)
        if ttl is None or 2 * len(self._pinned) >= self.total:
            return False
        self._pinned[block] = expiry = self._now + ttl
        if len(self._expiries) > 2 * len(self._pinned) + SLACK:
            # Why: a block that is used often is pinned anew each time, for hours each.
            self._expiries = [(due, each) for each, due in self._pinned.items()]
            heapq.heapify(self._expiries)
        else:
            heapq.heappush(self._expiries, (expiry, block))
        return True

    def _unpin(self, block: int) -> None:
        del self._pinned[block]
        self._ttls.pop(block, None)
        self._link(block, self._previous[0])

    def _link(self, block: int, before: int) -> None:
        """Put a block into the list after `before`; 0: where the next is taken."""
        after = self._next[before]
        self._next[before] = self._previous[after] = block
        self._previous[block], self._next[block] = before, after

    def _unlink(self, block: int) -> None:
        before, after = self._previous[block], self._next[block]
        self._next[before], self._previous[after] = after, before

    def _forget(self, block: int, name: bytes, gone: list[bytes]) -> None:
        self._names[block] = None
        self._ttls.pop(block, None)
        twins = self._twins.get(name)
        if twins is None:
            del self._by_name[name]
            gone.append(name)
            return
        if self._by_name[name] == block:
            self._by_name[name] = twins.pop()
        else:
            twins.remove(block)
        if not twins:
            del self._twins[name]
