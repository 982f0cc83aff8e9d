"""The answer cache: what is kept, whom it serves, and that no store can hurt a request."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.answers import AnswerCache, relabel
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Lease, Store
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, Finish, FinishCause, FinishKind, TokenDelta
from tokenwire.plugins.cache.memory.store import MemoryStore

TENANT = "default"
EOS = Finish(FinishKind.STOP, FinishCause.EOS, matched=TokenIds([2]))


def answer_of(*ids, job="j"):
    return (
        TokenDelta(job, 0, ids=TokenIds(ids[:1]), counts=Counts(prompt=7, computed=7, generated=1)),
        TokenDelta(
            job,
            1,
            ids=TokenIds(ids[1:]),
            counts=Counts(prompt=7, computed=7, generated=len(ids)),
            finish=EOS,
        ),
    )


def ids_of(answer):
    return [id_ for delta in answer for id_ in delta.ids]


class Stuck(Store):
    """Never answers, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0

    async def _wait(self):
        self.asked += 1
        await asyncio.Event().wait()

    async def get(self, namespace, key):
        await self._wait()

    async def set(self, namespace, key, value, *, ttl_s=None):
        await self._wait()

    async def delete(self, namespace, key):
        await self._wait()

    async def keys(self, namespace):
        await self._wait()

    async def apply(self, op, namespace, key):
        await self._wait()

    async def close(self): ...


class Failing(Stuck):
    """Fails at once, with `error`."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    async def _wait(self):
        self.asked += 1
        raise self.error


def memory():
    return MemoryStore(max_bytes=1 << 24)


def run(check, *, store=None, **settings):
    """Runs `check(cache, store)` with a cache that is closed after."""

    async def main():
        kept = store or memory()
        cache = AnswerCache(kept, 60.0, **{"lookup_s": 20.0, **settings})
        async with asyncio.timeout(60):
            try:
                await check(cache, kept)
            finally:
                await cache.close()

    asyncio.run(main())


async def compute(cache, ids=(5, 6), *, key="k", tenant=TENANT, gate=None, log=None):
    """As the flow does it: -> (ids, whether they were found)."""
    async with cache.flight(key, tenant) as flight:
        if flight.answer is not None:
            return ids_of(flight.answer), True
        if log is not None:
            log.append(ids)
        if gate is not None:
            await gate.wait()
        flight.keep(answer_of(*ids), n=1)
        return list(ids), False


async def settle(turns=20):
    for _ in range(turns):
        await asyncio.sleep(0)


def test_the_second_equal_call_is_answered_from_the_store():
    async def check(cache, store):
        assert await compute(cache) == ([5, 6], False)
        await settle()
        assert await compute(cache, (9, 9)) == ([5, 6], True)
        other = AnswerCache(store, 60.0, lookup_s=20.0)
        assert await compute(other, (9, 9)) == ([5, 6], True)
        await other.close()

    run(check)


def test_tenants_and_keys_never_share():
    async def check(cache, store):
        await compute(cache, (5,), key="k", tenant="a")
        await settle()
        assert await compute(cache, (6,), key="k", tenant="b") == ([6], False)
        assert await compute(cache, (7,), key="k2", tenant="a") == ([7], False)
        assert await cache.lookup("k", "c") is None

    run(check)


def test_an_answer_says_what_it_cost_and_whose_it_is():
    async def check(cache, store):
        await cache.store("k", TENANT, answer_of(5, 6))
        found = relabel(await cache.lookup("k", TENANT), "new", attempt=3)
        assert {(delta.job, delta.attempt) for delta in found} == {("new", 3)}
        assert found[-1].counts == Counts(prompt=7, cached=7, computed=0, generated=2)
        assert found[-1].finish == EOS

    run(check)


def test_an_answer_expires():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()

    async def check(cache, store):
        await cache.store("k", TENANT, answer_of(5, 6))
        clock.now = 59.9
        assert await cache.lookup("k", TENANT) is not None
        clock.now = 60.1
        assert await cache.lookup("k", TENANT) is None

    run(check, store=MemoryStore(max_bytes=1 << 24, clock=clock))


def test_bad_ends_are_not_kept():
    async def check(cache, store):
        (first, last) = answer_of(5, 6)
        aborted = Finish(FinishKind.ABORT, FinishCause.CLIENT)
        for deltas in ([first], [], [first, TokenDelta("j", 1, finish=aborted)]):
            await cache.store("k", TENANT, deltas)
        await cache.store("k", TENANT, (first, last), n=2)
        assert await cache.lookup("k", TENANT) is None

    run(check)


def test_too_large_an_answer_is_not_kept_but_shared():
    async def check(cache, store):
        gate = asyncio.Event()
        calls = [asyncio.create_task(compute(cache, range(100), gate=gate)) for _ in range(3)]
        await settle()
        gate.set()
        assert sorted(found for _, found in await asyncio.gather(*calls)) == [False, True, True]
        await settle()
        assert await cache.lookup("k", TENANT) is None

    run(check, max_bytes=50)


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x80", b"x" * 100])
def test_what_nobody_wrote_is_a_miss(value):
    async def check(cache, store):
        await store.set("answers:" + TENANT, "k", value)
        assert await compute(cache) == ([5, 6], False)
        await settle()
        assert await compute(cache, (9,)) == ([5, 6], True)

    run(check)


# --- one computes, the others wait -------------------------------------------------------------


def test_equal_calls_at_once_are_computed_once():
    async def check(cache, store):
        gate, log = asyncio.Event(), []
        calls = [asyncio.create_task(compute(cache, (5, 6), gate=gate, log=log)) for _ in range(50)]
        await settle()
        assert len(log) == 1
        gate.set()
        answers = await asyncio.gather(*calls)
        assert [ids for ids, _ in answers] == [[5, 6]] * 50
        assert [found for _, found in answers].count(False) == 1
        assert cache._leaders == {}

    run(check)


@pytest.mark.parametrize("way", ["fails", "is cancelled", "ends badly"])
def test_when_the_first_fails_another_goes_on_by_itself(way):
    async def check(cache, store):
        gate, log = asyncio.Event(), []

        async def first():
            async with cache.flight("k", TENANT) as flight:
                await gate.wait()
                if way == "ends badly":
                    flight.keep(answer_of(5, 6)[:1], n=1)
                    return
                raise ValueError("engine lost")

        leader = asyncio.create_task(first())
        await settle()
        calls = [asyncio.create_task(compute(cache, log=log)) for _ in range(10)]
        await settle()
        assert log == []
        leader.cancel() if way == "is cancelled" else gate.set()
        answers = await asyncio.gather(*calls)
        assert [ids for ids, _ in answers] == [[5, 6]] * 10
        assert len(log) == 1
        await asyncio.wait([leader])
        assert way == "ends badly" or leader.cancelled() or leader.exception() is not None

    run(check)


def test_a_follower_waits_no_longer_than_it_may():
    async def check(cache, store):
        gate = asyncio.Event()
        slow = asyncio.create_task(compute(cache, (5,), gate=gate))
        await settle()
        assert await compute(cache, (6,)) == ([6], False)
        gate.set()
        assert await slow == ([5], False)

    run(check, follow_s=0.01)


def test_a_follower_that_goes_away_disturbs_nobody():
    async def check(cache, store):
        gate = asyncio.Event()
        calls = [asyncio.create_task(compute(cache, gate=gate)) for _ in range(3)]
        await settle()
        calls[1].cancel()
        await settle()
        gate.set()
        assert await calls[0] == ([5, 6], False)
        assert await calls[2] == ([5, 6], True)

    run(check)


def test_another_process_waits_for_the_lease_holder():
    async def check(cache, store):
        other = AnswerCache(store, 60.0, lookup_s=20.0)
        gate, log = asyncio.Event(), []
        first = asyncio.create_task(compute(cache, gate=gate, log=log))
        await settle()
        second = asyncio.create_task(compute(other, (9,), log=log))
        await settle()
        assert not second.done()
        gate.set()
        assert await first == ([5, 6], False)
        assert await second == ([5, 6], True)
        assert log == [(5, 6)]
        await other.close()

    run(check)


def test_another_processs_failure_frees_the_lease():
    async def check(cache, store):
        other = AnswerCache(store, 60.0, lookup_s=20.0)
        gate = asyncio.Event()
        first = asyncio.create_task(compute(cache, gate=gate))
        await settle()
        second = asyncio.create_task(compute(other, (9,)))
        await settle()
        first.cancel()
        assert await second == ([9], False)
        await other.close()

    run(check)


def test_a_dead_processs_lease_is_waited_for_no_longer_than_allowed():
    async def check(cache, store):
        await store.apply(Lease("dead", 3600), "answer-leases:" + TENANT, "k")
        assert await compute(cache) == ([5, 6], False)
        await settle()
        assert await compute(cache, (9,)) == ([5, 6], True)

    run(check, follow_s=0.01)


# --- a store that is slow, lost or wrong -------------------------------------------------------


def test_a_store_that_never_answers_is_asked_once_and_left_behind():
    async def check(cache, store):
        assert await compute(cache) == ([5, 6], False)
        assert store.asked == 1
        assert await cache.lookup("k", TENANT) is None
        await cache.store("k", TENANT, answer_of(5))

    run(check, store=Stuck(), lookup_s=0.01)


def test_what_is_left_behind_is_bounded():
    async def check(cache, store):
        for number in range(200):
            assert await compute(cache, key=str(number)) == ([5, 6], False)
        assert store.asked <= 64
        assert len(cache._calls._tasks) <= 64

    run(check, store=Stuck(), lookup_s=0.0001)


def test_equal_calls_are_computed_once_without_any_store():
    async def check(cache, store):
        gate, log = asyncio.Event(), []
        calls = [asyncio.create_task(compute(cache, gate=gate, log=log)) for _ in range(10)]
        await asyncio.sleep(0.05)
        gate.set()
        assert [ids for ids, _ in await asyncio.gather(*calls)] == [[5, 6]] * 10
        assert len(log) == 1

    run(check, store=Stuck(), lookup_s=0.01)


@pytest.mark.parametrize("error", [StoreError("lost"), RuntimeError("a bug"), TimeoutError()])
def test_a_store_that_fails_fails_no_request(error, caplog):
    async def check(cache, store):
        assert await compute(cache) == ([5, 6], False)
        assert await cache.lookup("k", TENANT) is None
        await cache.store("k", TENANT, answer_of(5))
        await settle()

    run(check, store=Failing(error))
    said = "broke its contract" in caplog.text
    assert said == isinstance(error, RuntimeError)


def test_a_request_that_goes_away_while_the_store_is_asked_leaves_nothing():
    async def check(cache, store):
        call = asyncio.create_task(compute(cache))
        await settle()
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        assert cache._leaders == {}

    run(check, store=Stuck())
