"""The memory store's own promises: bounded, evicts only what it may, forgets on time."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import CompareAndSet, Incr, Lease, Take
from tokenwire.plugins.cache.memory.store import ENTRY_BYTES, MemoryStore

VALUE = b"v" * 1000
SIZE = ENTRY_BYTES + 4 * 2 + len(VALUE)
"""Of VALUE in a namespace and under a key of one character each."""


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def store_for(entries, clock=None):
    return MemoryStore(max_bytes=entries * SIZE, clock=clock or Clock())


def test_the_longest_unused_value_makes_room():
    async def check():
        store = store_for(3)
        for key in "abc":
            await store.set("n", key, VALUE, ttl_s=60)
        await store.get("n", "a")
        await store.set("n", "d", VALUE, ttl_s=60)
        assert sorted(await store.keys("n")) == ["a", "c", "d"]
        assert store.evicted == 1
        assert store.used_bytes == 3 * SIZE

    asyncio.run(check())


@pytest.mark.parametrize(
    "op",
    [
        Incr(1, 60),
        Take(1, 2, 0.001),
        Lease("h", 60),
        CompareAndSet(None, b"x", 60),
    ],
)
def test_state_is_not_evicted_before_or_after_values(op):
    async def check():
        store = store_for(3)
        await store.apply(op, "n", "s")
        for key in "abcdefgh":
            await store.set("n", key, VALUE, ttl_s=60)
        assert "s" in await store.keys("n")
        assert store.evicted > 0

    asyncio.run(check())


def test_what_only_kept_entries_fill_refuses_and_loses_nothing():
    async def check():
        store = store_for(3)
        for key in "ab":
            await store.set("n", key, VALUE)
        await store.set("n", "c", VALUE, ttl_s=60)
        with pytest.raises(StoreError, match=r"full.*cache\.max_bytes"):
            await store.set("n", "d", VALUE + VALUE)
        assert sorted(await store.keys("n")) == ["a", "b", "c"]
        await store.set("n", "d", VALUE)
        assert sorted(await store.keys("n")) == ["a", "b", "d"]
        with pytest.raises(StoreError, match="full"):
            await store.apply(Incr(), "n", "count")
        await store.set("n", "a", VALUE[:500])
        assert await store.get("n", "a") == VALUE[:500]

    asyncio.run(check())


def test_a_value_larger_than_the_store_is_refused_and_evicts_nothing():
    async def check():
        store = store_for(2)
        await store.set("n", "a", VALUE, ttl_s=60)
        with pytest.raises(StoreError):
            await store.set("n", "b", VALUE * 3, ttl_s=60)
        assert await store.get("n", "a") == VALUE

    asyncio.run(check())


def test_a_lease_renewed_for_long_costs_one_entry():
    async def check():
        clock = Clock()
        store = store_for(3, clock)
        for _ in range(5000):
            clock.now += 0.01
            await store.apply(Lease("h", 3600), "n", "k")
        assert len(store._due) < 200
        clock.now += 3601
        assert await store.keys("n") == ()

    asyncio.run(check())


def test_a_ttl_that_is_no_number_is_refused():
    async def check():
        store = store_for(3)
        with pytest.raises(StoreError):
            await store.set("n", "k", b"", ttl_s=math.nan)
        await store.set("n", "k", b"", ttl_s=math.inf)
        assert await store.get("n", "k") == b""

    asyncio.run(check())


def test_closed_it_refuses():
    async def check():
        store = store_for(3)
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.get("n", "k")

    asyncio.run(check())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("set", "keep", "delete", "incr", "wait")),
        st.sampled_from("abcd"),
        st.integers(1, 20),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_books_balance_whatever_happens(steps):
    async def check():
        clock = Clock()
        store = MemoryStore(max_bytes=4 * ENTRY_BYTES, clock=clock)
        due = {}
        for verb, key, number in steps:
            try:
                if verb == "wait":
                    clock.now += number
                elif verb == "delete":
                    await store.delete("n", key)
                elif verb == "incr":
                    await store.apply(Incr(1, number), "n", key)
                else:
                    ttl_s = number if verb == "set" else None
                    await store.set("n", key, b"%d" % number, ttl_s=ttl_s)
                    due[key] = clock.now + number if verb == "set" else math.inf
            except StoreError:
                pass
            living = await store.keys("n")
            sizes = [entry.size for entry in store._spaces.get("n", {}).values()]
            assert store.used_bytes == sum(sizes) <= store.max_bytes
            assert len(living) == len(sizes) == store._living
            if verb in ("set", "keep") and key in living:
                assert due[key] > clock.now
        clock.now += 100
        for key in await store.keys("n"):
            await store.delete("n", key)
        assert (store.used_bytes, store._kept_bytes, len(store._evictable)) == (0, 0, 0)

    asyncio.run(check())
