"""Answers over a real server that is stalled or killed: no request fails, none waits for long."""

from __future__ import annotations

import asyncio

import pytest

from tokenwire.core.answers import AnswerCache
from tokenwire.core.errors import StoreError
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, FinishCause, FinishKind, TokenDelta
from tokenwire.plugins.cache.redis.settings import RedisSettings
from tokenwire.plugins.cache.redis.store import RedisStore

END = Finish(FinishKind.STOP, FinishCause.EOS)
PATIENT_S = 20.0


def store_at(server, timeout_s=0.1):
    return RedisStore(RedisSettings(endpoint=server.url, timeout_s=timeout_s))


async def call(cache, key, ids):
    async with cache.flight(key, "t") as flight:
        if flight.answer is not None:
            return flight.answer[0].ids.tolist()
        flight.keep([TokenDelta("j", 0, ids=TokenIds(ids), finish=END)], n=1)
        return list(ids)


async def until(what):
    async with asyncio.timeout(PATIENT_S):
        while not await what():
            await asyncio.sleep(0.02)


def test_two_processes_share_answers(own_valkey):
    server = own_valkey()

    async def check():
        stores = [store_at(server, PATIENT_S) for _ in range(2)]
        ours, theirs = (AnswerCache(store, 60.0, lookup_s=PATIENT_S) for store in stores)
        assert await call(ours, "k", [1]) == [1]
        assert await call(theirs, "k", [2]) == [1]
        for closing in (ours, theirs, *stores):
            await closing.close()

    asyncio.run(check())


@pytest.mark.parametrize("loss", ["stall", "kill"])
def test_a_lost_server_fails_no_request_and_ends_up_unasked(own_valkey, loss):
    server = own_valkey()

    async def check():
        store = store_at(server)
        cache = AnswerCache(store, 60.0, lookup_s=0.02)

        async def is_open():
            await call(cache, "k", [1])
            return store._breaker.is_open

        await until(lambda: kept(cache, "before"))
        getattr(server, loss)()
        async with asyncio.timeout(PATIENT_S):
            for number in range(20):
                assert await call(cache, f"new{number}", [number]) == [number]
            await until(is_open)
        # Why: with the breaker open the store is not waited for, whatever the bound.
        cache._lookup_s = 3600.0
        async with asyncio.timeout(PATIENT_S):
            assert await call(cache, "k", [4]) == [4]
            with pytest.raises(StoreError):
                store.get("n", "k").send(None)
        server.wake() if loss == "stall" else server.start()
        cache._lookup_s = PATIENT_S
        await until(lambda: kept(cache, "after"))
        await cache.close()
        await store.close()

    async def kept(cache, key):
        await call(cache, key, [7])
        return await cache.lookup(key, "t") is not None

    asyncio.run(check())
