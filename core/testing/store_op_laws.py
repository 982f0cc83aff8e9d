"""The store port's laws about atomic ops, one function each; its name is the law's. Knows no store.

The last five let many users call at once.
"""

from __future__ import annotations

import asyncio
import math

from tokenwire.core.ports.store import AtomicOp, CompareAndSet, Incr, Lease, Store, Take
from tokenwire.core.testing.store_probe import StoreProbe
from tokenwire.core.testing.store_value_laws import LATER_S, LONG_S, SHORT_S

__all__ = ("CONCURRENT", "OPS")

LARGEST = b"%d" % (2**53 - 1)


async def incr(probe: StoreProbe) -> None:
    """Counts from 0, answers the new value; the TTL is that of the making."""
    async with probe.open() as store:
        space = probe.space()
        for by, wanted in ((1, 1), (5, 6), (-8, -2), (0, -2)):
            probe.equal(f"incr by {by}", await store.apply(Incr(by), space, "count"), wanted)
        probe.equal("get of a count", await store.get(space, "count"), b"-2")
        await store.apply(Incr(1, SHORT_S), space, "made")
        await store.apply(Incr(1, LONG_S), space, "made")
        await store.apply(Incr(1), space, "long")
        await store.apply(Incr(1, SHORT_S), space, "long")
        await probe.advance(LATER_S)
        probe.equal("incr after the TTL", await store.apply(Incr(), space, "made"), 1)
        probe.equal("incr of one without TTL", await store.apply(Incr(), space, "long"), 3)


async def take(probe: StoreProbe) -> None:
    """A bucket is full at first, answers 0 while it has enough, else how long to wait."""
    async with probe.open() as store:
        space = probe.space()
        slow = Take(3, 4, 0.001)
        probe.equal("take 3 of 4", await store.apply(slow, space, "slow"), 0)
        wait = await store.apply(slow, space, "slow")
        probe.true(f"take 3 of 1: wanted a wait of nearly 2000 s, got {wait}", 1900 < wait <= 2000)
        probe.equal("take 1 of 1", await store.apply(Take(1, 4, 0.001), space, "slow"), 0)
        probe.equal("take of nothing", await store.apply(Take(0, 4, 0.001), space, "slow"), 0)
        never = (Take(5, 4, 1), Take(1, 0, 0))
        for number, op in enumerate(never):
            answer = await store.apply(op, space, f"never{number}")
            probe.equal("take of more than the capacity", answer, math.inf)
        await store.apply(Take(4, 4, 0), space, "dry")
        probe.equal("dry, no refill", await store.apply(Take(1, 4, 0), space, "dry"), math.inf)


async def take_refills(probe: StoreProbe) -> None:
    """Whoever waits as long as it was told can take."""
    async with probe.open() as store:
        space = probe.space()
        op = Take(2, 2, 10)
        probe.equal("take 2 of 2", await store.apply(op, space, "bucket"), 0)
        for _ in range(5):
            wait = await store.apply(op, space, "bucket")
            probe.true(f"wanted a wait of at most 0.2 s, got {wait}", wait <= 0.2)
            if wait == 0:
                return
            await probe.advance(wait + 0.001)
        probe.broken("after five waits, each as long as told, there was nothing to take")


async def lease(probe: StoreProbe) -> None:
    """One holder; it may renew and release; the TTL frees it."""
    async with probe.open() as store:
        space = probe.space()

        async def ask(holder: str, ttl_s: float) -> float:
            return await store.apply(Lease(holder, ttl_s), space, "lease")

        probe.equal("release of what nobody holds", await ask("a", 0), 0)
        probe.equal("first lease", await ask("a", LONG_S), 1)
        probe.equal("lease by another", await ask("b", LONG_S), 0)
        probe.equal("release by another", await ask("b", 0), 0)
        probe.equal("renewal", await ask("a", LONG_S), 1)
        probe.equal("release", await ask("a", 0), 1)
        probe.equal("lease after release", await ask("b", SHORT_S), 1)
        await probe.advance(LATER_S)
        probe.equal("lease after the TTL", await ask("c", SHORT_S), 1)
        probe.equal("renewal for longer", await ask("c", LONG_S), 1)
        await probe.advance(LATER_S)
        probe.equal("lease by another after a renewal", await ask("d", LONG_S), 0)


async def compare_and_set(probe: StoreProbe) -> None:
    """Sets, with its TTL, what holds the expected value, and deletes where the new one is None."""
    async with probe.open() as store:
        space = probe.space()

        async def swap(old: bytes | None, new: bytes | None, ttl_s: float | None = None) -> float:
            return await store.apply(CompareAndSet(old, new, ttl_s), space, "key")

        probe.equal("absent expected, absent", await swap(None, b""), 1)
        probe.equal("absent expected, empty value there", await swap(None, b"x"), 0)
        probe.equal("another value expected", await swap(b"y", b"x"), 0)
        probe.equal("get after refusals", await store.get(space, "key"), b"")
        probe.equal("empty value expected", await swap(b"", b"\0new"), 1)
        probe.equal("get after a swap", await store.get(space, "key"), b"\0new")
        probe.equal("deletion", await swap(b"\0new", None), 1)
        probe.equal("get after deletion", await store.get(space, "key"), None)
        probe.equal("a value expected, absent", await swap(b"x", b"y"), 0)
        probe.equal("with a TTL", await swap(None, b"x", SHORT_S), 1)
        await probe.advance(LATER_S)
        probe.equal("absent expected, after the TTL", await swap(None, b"y"), 1)


async def wrong_kind(probe: StoreProbe) -> None:
    """An op that the key's value cannot serve is StoreError, and changes nothing."""
    async with probe.open() as store:
        space = probe.space()
        await store.set(space, "text", b"no number")
        await store.set(space, "large", LARGEST)
        await probe.refuses("incr of text", store.apply(Incr(), space, "text"))
        await probe.refuses("take from text", store.apply(Take(1, 1, 1), space, "text"))
        await probe.refuses("incr beyond 2**53 - 1", store.apply(Incr(), space, "large"))
        probe.equal("get after refusals", await store.get(space, "text"), b"no number")
        probe.equal("get after refusals", await store.get(space, "large"), LARGEST)


async def no_lost_increment(probe: StoreProbe) -> None:
    """However many count at once, each sees a value of its own."""
    got = await _race(probe, "count", [Incr() for _ in range(100)])
    probe.equal("100 increments at once", sorted(got), [float(n) for n in range(1, 101)])


async def never_over_take(probe: StoreProbe) -> None:
    """However many take at once, a bucket gives what it holds."""
    got = await _race(probe, "bucket", [Take(2, 15, 0) for _ in range(40)])
    probe.equal("takes of 2 from 15, at once, that were granted", got.count(0.0), 7)


async def one_lease_holder(probe: StoreProbe) -> None:
    """However many ask at once, one holds."""
    got = await _race(probe, "lease", [Lease(f"holder {n}", LONG_S) for n in range(40)])
    probe.equal("holders of one lease", sum(got), 1)


async def one_swap_wins(probe: StoreProbe) -> None:
    """However many compare and set at once, one finds what it expected."""
    got = await _race(probe, "key", [CompareAndSet(None, b"%d" % n) for n in range(40)])
    probe.equal("swaps from absent that were granted", sum(got), 1)


async def concurrent_writers(probe: StoreProbe) -> None:
    """A reader sees one writer's value, whole."""
    async with probe.open() as store:
        space = probe.space()
        values = [bytes([n]) * (10_000 + n) for n in range(20)]
        await store.set(space, "key", values[0])

        async def read() -> None:
            for _ in range(5):
                seen = await store.get(space, "key")
                probe.true("a reader saw what nobody wrote", seen in values)
                await asyncio.sleep(0)

        writes = (store.set(space, "key", value) for value in values)
        await asyncio.gather(*writes, *(read() for _ in values))
        probe.true("the end is what nobody wrote", await store.get(space, "key") in values)


async def _race(probe: StoreProbe, key: str, ops: list[AtomicOp]) -> list[float]:
    """All at once; by two users of the store where it can have two."""
    space = probe.space()
    async with probe.open() as first:
        if first.durability != "shared":
            return await _at_once((first, first), space, key, ops)
        async with probe.open() as second:
            return await _at_once((first, second), space, key, ops)


async def _at_once(
    stores: tuple[Store, Store], space: str, key: str, ops: list[AtomicOp]
) -> list[float]:
    calls = (stores[n % 2].apply(op, space, key) for n, op in enumerate(ops))
    return list(await asyncio.gather(*calls))


OPS = (incr, take, take_refills, lease, compare_and_set, wrong_kind)
CONCURRENT = (
    no_lost_increment,
    never_over_take,
    one_lease_holder,
    one_swap_wins,
    concurrent_writers,
)
