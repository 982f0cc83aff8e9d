"""A store in this process: bounded, least recently used values make room. Knows no other process.

One event loop uses it; nothing here awaits, so every call is atomic. Two kinds of entries: those
that `set` wrote with a TTL may be evicted; all others (counters, buckets, leases, compared-and-set
values, values without a TTL) are kept until they expire or are deleted. Where only kept ones fill
the store, a write that needs room is a StoreError: nothing is lost in silence.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from time import monotonic
from typing import final

from msgspec import Struct

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, Store
from tokenwire.plugins.cache.memory.ops import step

__all__ = ("ENTRY_BYTES", "MemoryStore")

ENTRY_BYTES = 256
"""What a key costs beside its text and its value: objects and table slots, as measured roughly."""

Name = tuple[str, str]


class _Entry(Struct):
    value: bytes
    expires: float
    """On the clock; inf: never."""
    size: int
    kept: bool


@final
class MemoryStore(Store):
    """`clock`: seconds that never go back."""

    durability = "process"

    def __init__(self, *, max_bytes: int, clock: Callable[[], float] = monotonic) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self.evicted = 0
        """How many values have made room for others so far."""
        self._clock = clock
        self._spaces: dict[str, dict[str, _Entry]] = {}
        self._evictable: OrderedDict[Name, None] = OrderedDict()
        """In order of use, the longest unused first."""
        self._due: list[tuple[float, Name]] = []
        """A heap; entries that were replaced since leave stale pairs behind."""
        self._living = 0
        self._kept_bytes = 0
        self._is_closed = False

    async def get(self, namespace: str, key: str) -> bytes | None:
        self._expire()
        entry = self._find(namespace, key)
        if entry is None:
            return None
        if not entry.kept:
            self._evictable.move_to_end((namespace, key))
        return entry.value

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        now = self._expire()
        expires = _expiry(now, ttl_s)
        self._write((namespace, key), bytes(value), expires, kept=expires == math.inf, now=now)

    async def delete(self, namespace: str, key: str) -> bool:
        self._expire()
        return self._remove((namespace, key))

    async def keys(self, namespace: str) -> tuple[str, ...]:
        self._expire()
        return tuple(self._spaces.get(namespace, ()))

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        now = self._expire()
        entry = self._find(namespace, key)
        held = None if entry is None else entry.value
        done = step(op, held, now)
        name = (namespace, key)
        if done.value is None:
            self._remove(name)
        elif done.renews:
            self._write(name, done.value, _expiry(now, done.ttl_s), kept=True, now=now)
        elif entry is not None and done.value != held:
            self._write(name, done.value, entry.expires, kept=True, now=now)
        return float(done.result)

    async def close(self) -> None:
        self._is_closed = True
        for table in (self._spaces, self._evictable, self._due):
            table.clear()
        self.used_bytes = self._kept_bytes = self._living = 0

    def _find(self, namespace: str, key: str) -> _Entry | None:
        space = self._spaces.get(namespace)
        return None if space is None else space.get(key)

    def _write(self, name: Name, value: bytes, expires: float, *, kept: bool, now: float) -> None:
        if expires <= now:
            self._remove(name)
            return
        namespace, key = name
        size = ENTRY_BYTES + 4 * (len(namespace) + len(key)) + len(value)
        self._make_room(name, size)
        self._spaces.setdefault(namespace, {})[key] = _Entry(value, expires, size, kept)
        self._living += 1
        self.used_bytes += size
        if kept:
            self._kept_bytes += size
        else:
            self._evictable[name] = None
        if expires < math.inf:
            heappush(self._due, (expires, name))
            self._compact()

    def _make_room(self, name: Name, size: int) -> None:
        """Takes out what `name` holds and evicts until `size` bytes fit; all of it or nothing."""
        old = self._find(*name)
        kept = self._kept_bytes - (old.size if old is not None and old.kept else 0)
        if kept + size > self.max_bytes:
            raise StoreError(
                f"the memory store is full: {size} bytes are wanted, {kept} of"
                f" cache.max_bytes={self.max_bytes} are held by entries that are never evicted"
            )
        self._remove(name)
        while self.used_bytes + size > self.max_bytes:
            self._remove(next(iter(self._evictable)))
            self.evicted += 1

    def _remove(self, name: Name) -> bool:
        namespace, key = name
        space = self._spaces.get(namespace)
        entry = None if space is None else space.pop(key, None)
        if space is None or entry is None:
            return False
        if not space:
            del self._spaces[namespace]
        self._living -= 1
        self.used_bytes -= entry.size
        if entry.kept:
            self._kept_bytes -= entry.size
        else:
            del self._evictable[name]
        return True

    def _expire(self) -> float:
        """Drops what is due, so that whatever is found is alive. -> now."""
        if self._is_closed:
            raise StoreError("the memory store is closed")
        now = self._clock()
        while self._due and self._due[0][0] <= now:
            expires, name = heappop(self._due)
            entry = self._find(*name)
            if entry is not None and entry.expires == expires:
                self._remove(name)
        return now

    def _compact(self) -> None:
        """Keeps the heap in proportion: a lease renewed a million times is one entry."""
        if len(self._due) > 2 * self._living + 64:
            self._due = [
                (entry.expires, (namespace, key))
                for namespace, space in self._spaces.items()
                for key, entry in space.items()
                if entry.expires < math.inf
            ]
            heapify(self._due)


def _expiry(now: float, ttl_s: float | None) -> float:
    if ttl_s is None:
        return math.inf
    if math.isnan(ttl_s):
        raise StoreError("ttl_s is not a number")
    return now + ttl_s
