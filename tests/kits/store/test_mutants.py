"""Broken stores, one for each law of the store kit, and each caught by that law by name."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager

import pytest

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import CompareAndSet, Incr, Lease, Store, Take
from tokenwire.core.testing.laws import LawBroken
from tokenwire.core.testing.store_kit import LAWS, run_store_kit
from tokenwire.plugins.cache.memory.store import MemoryStore


class Clock:
    """Time that only a test moves."""

    now = 0.0

    def __call__(self):
        return self.now

    async def advance(self, seconds):
        self.now += seconds


class Right(Store):
    """Passes every law; each mutant breaks one thing of it."""

    def __init__(self, clock):
        self.inner = MemoryStore(max_bytes=1 << 26, clock=clock)

    async def get(self, namespace, key):
        return await self.inner.get(namespace, key)

    async def set(self, namespace, key, value, *, ttl_s=None):
        await self.inner.set(namespace, key, value, ttl_s=ttl_s)

    async def delete(self, namespace, key):
        return await self.inner.delete(namespace, key)

    async def keys(self, namespace):
        return await self.inner.keys(namespace)

    async def apply(self, op, namespace, key):
        return await self.inner.apply(op, namespace, key)

    async def close(self):
        await self.inner.close()


class EmptyForMissing(Right):
    async def get(self, namespace, key):
        return await super().get(namespace, key) or b""


class TrimsZeros(Right):
    async def set(self, namespace, key, value, *, ttl_s=None):
        await super().set(namespace, key, value.rstrip(b"\0"), ttl_s=ttl_s)


class DeletesInSilence(Right):
    async def delete(self, namespace, key):
        await super().delete(namespace, key)
        return False


class NeverForgets(Right):
    async def set(self, namespace, key, value, *, ttl_s=None):
        await super().set(namespace, key, value)


class KeepsTheOldTtl(Right):
    def __init__(self, clock):
        super().__init__(clock)
        self.ttls = {}

    async def set(self, namespace, key, value, *, ttl_s=None):
        ttl_s = self.ttls.setdefault((namespace, key), ttl_s) if ttl_s is None else ttl_s
        self.ttls[namespace, key] = ttl_s
        await super().set(namespace, key, value, ttl_s=ttl_s)


class CutsKeysAtNul(Right):
    async def get(self, namespace, key):
        return await super().get(namespace, key.split("\0")[0])

    async def set(self, namespace, key, value, *, ttl_s=None):
        await super().set(namespace, key.split("\0")[0], value, ttl_s=ttl_s)


class JoinsWithColons(Right):
    async def get(self, namespace, key):
        return await self.inner.get("", f"{namespace}:{key}")

    async def set(self, namespace, key, value, *, ttl_s=None):
        await self.inner.set("", f"{namespace}:{key}", value, ttl_s=ttl_s)

    async def delete(self, namespace, key):
        return await self.inner.delete("", f"{namespace}:{key}")

    async def keys(self, namespace):
        start = f"{namespace}:"
        found = await self.inner.keys("")
        return tuple(key.removeprefix(start) for key in found if key.startswith(start))


class ClaimsToShare(Right):
    durability = "shared"


class ClosesOnce(Right):
    is_closed = False

    async def close(self):
        if self.is_closed:
            raise RuntimeError("already closed")
        self.is_closed = True


class AnswersTheOldCount(Right):
    async def apply(self, op, namespace, key):
        answer = await super().apply(op, namespace, key)
        return answer - op.by if isinstance(op, Incr) else answer


class RenewsTheCountsTtl(Right):
    async def apply(self, op, namespace, key):
        answer = await super().apply(op, namespace, key)
        if isinstance(op, Incr) and op.ttl_s is not None:
            await self.set(namespace, key, b"%d" % answer, ttl_s=op.ttl_s)
        return answer


class AlwaysHopes(Right):
    async def apply(self, op, namespace, key):
        answer = await super().apply(op, namespace, key)
        return 1e9 if answer == math.inf else answer


class NeverRefills(Right):
    def __init__(self, clock):
        super().__init__(clock)
        self.buckets = MemoryStore(max_bytes=1 << 26, clock=lambda: 0.0)

    async def apply(self, op, namespace, key):
        if isinstance(op, Take) and await self.inner.get(namespace, key) is None:
            return await self.buckets.apply(op, namespace, key)
        return await super().apply(op, namespace, key)


class AnybodyReleases(Right):
    async def apply(self, op, namespace, key):
        if isinstance(op, Lease) and op.ttl_s == 0:
            return float(await self.delete(namespace, key))
        return await super().apply(op, namespace, key)


class EmptyIsAbsent(Right):
    async def apply(self, op, namespace, key):
        if isinstance(op, CompareAndSet) and await self.get(namespace, key) == b"":
            await self.delete(namespace, key)
        return await super().apply(op, namespace, key)


class CountsAnything(Right):
    async def apply(self, op, namespace, key):
        try:
            return await super().apply(op, namespace, key)
        except StoreError:
            await self.delete(namespace, key)
            return await super().apply(op, namespace, key)


class CountsBeside(Right):
    """Counts in a table of its own, which `set` does not reach."""

    def __init__(self, clock):
        super().__init__(clock)
        self.counts = {}

    async def apply(self, op, namespace, key):
        name = (namespace, key)
        if await self.get(namespace, key) is None:
            self.counts.pop(name, None)
        answer = await super().apply(op, namespace, key)
        if isinstance(op, Incr):
            answer = self.counts[name] = self.counts.get(name, answer - op.by) + op.by
        return answer


class Racy(Right):
    """Reads, lets others go first, and writes as if nothing had happened since."""

    kind = type(None)

    async def apply(self, op, namespace, key):
        if isinstance(op, self.kind):
            held = await self.get(namespace, key)
            await asyncio.sleep(0)
            now = await self.get(namespace, key)
            if now != held:
                await self.inner.apply(CompareAndSet(now, held), namespace, key)
        return await super().apply(op, namespace, key)


class RacyCount(Racy):
    kind = Incr


class RacyBucket(Racy):
    kind = Take


class RacyLease(Racy):
    kind = Lease


class RacySwap(Racy):
    kind = CompareAndSet


class WritesInHalves(Right):
    async def set(self, namespace, key, value, *, ttl_s=None):
        await super().set(namespace, key, value[: len(value) // 2], ttl_s=ttl_s)
        await asyncio.sleep(0)
        await super().set(namespace, key, value, ttl_s=ttl_s)


class LetsOthersOut(Right):
    async def keys(self, namespace):
        raise KeyError(namespace)


MUTANTS = [
    ("missing_key", EmptyForMissing),
    ("missing_key", LetsOthersOut),
    ("binary_values", TrimsZeros),
    ("delete", DeletesInSilence),
    ("expiry", NeverForgets),
    ("overwrite_replaces_ttl", KeepsTheOldTtl),
    ("odd_keys", CutsKeysAtNul),
    ("namespaces_apart", JoinsWithColons),
    ("reopen", ClaimsToShare),
    ("close_twice", ClosesOnce),
    ("incr", AnswersTheOldCount),
    ("incr", RenewsTheCountsTtl),
    ("take", AlwaysHopes),
    ("take_refills", NeverRefills),
    ("lease", AnybodyReleases),
    ("compare_and_set", EmptyIsAbsent),
    ("wrong_kind", CountsAnything),
    ("model", CountsBeside),
    ("no_lost_increment", RacyCount),
    ("never_over_take", RacyBucket),
    ("one_lease_holder", RacyLease),
    ("one_swap_wins", RacySwap),
    ("concurrent_writers", WritesInHalves),
]


def run(kind):
    clock = Clock()

    @asynccontextmanager
    async def make():
        store = kind(clock)
        yield store
        await store.inner.close()

    run_store_kit(make, advance=clock.advance)


def test_the_right_one_passes():
    run(Right)


@pytest.mark.parametrize(("law", "mutant"), MUTANTS)
def test_is_caught_by_its_law(law, mutant):
    with pytest.raises(LawBroken) as caught:
        run(mutant)
    assert (caught.value.port, caught.value.law) == ("store", law), caught.value.detail
    assert law in str(caught.value)


def test_every_law_catches_somebody():
    assert {law for law, _ in MUTANTS} == set(LAWS)
