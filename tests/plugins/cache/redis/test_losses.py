"""What a Redis that is killed, stalled, full of others' keys or a replica does to its users."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Incr
from tokenwire.core.resolve import Endpoint
from tokenwire.plugins.cache.redis.settings import RedisSettings
from tokenwire.plugins.cache.redis.store import RedisStore

PATIENT_S = 20.0
HURRIED_S = 0.05


def store_at(server, timeout_s=HURRIED_S, **settings):
    return RedisStore(RedisSettings(endpoint=server.url, timeout_s=timeout_s, **settings))


def fails_at_once(coroutine):
    """Without giving way to the loop even once: it waits for nobody."""
    with pytest.raises(StoreError):
        coroutine.send(None)


async def until_it_works(store):
    async with asyncio.timeout(PATIENT_S):
        while True:
            try:
                return await store.get("n", "k")
            except StoreError:
                await asyncio.sleep(0.02)


async def fail_until_open(store):
    for _ in range(3):
        with pytest.raises(StoreError):
            await store.get("n", "k")


def test_a_stalled_server_costs_time_thrice_and_then_none(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server)
        await until_it_works(store)
        server.stall()
        async with asyncio.timeout(PATIENT_S):
            await fail_until_open(store)
            for _ in range(100):
                fails_at_once(store.get("n", "k"))
            fails_at_once(store.apply(Incr(), "n", "k"))
            await asyncio.sleep(1.1)
            # Why: even the call that finds a probe due only starts it, beside itself.
            fails_at_once(store.get("n", "k"))
        server.wake()
        assert await until_it_works(store) is None
        await store.set("n", "k", b"again")
        assert await store.get("n", "k") == b"again"
        await store.close()

    asyncio.run(check())


def test_a_killed_server_is_found_again_when_it_comes_back(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, timeout_s=1.0)
        await store.set("n", "k", b"before")
        server.kill()
        await fail_until_open(store)
        fails_at_once(store.get("n", "k"))
        server.start()
        assert await until_it_works(store) is None
        # Why: the new server knows no script, so the op is sent as source.
        assert await store.apply(Incr(), "n", "count") == 1
        await store.close()

    asyncio.run(check())


def test_a_server_that_was_never_there_is_found_when_it_comes(own_valkey):
    server = own_valkey()
    server.kill()

    async def check():
        store = store_at(server, timeout_s=1.0)
        with pytest.raises(StoreError, match="not reachable"):
            await store.get("n", "k")
        server.start()
        assert await until_it_works(store) is None
        await store.close()

    asyncio.run(check())


def test_scripts_that_the_server_forgot_are_sent_again(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, timeout_s=PATIENT_S)
        async with Redis.from_url(server.url) as client:
            for wanted in (1, 2, 3):
                assert await store.apply(Incr(), "n", "count") == wanted
                await client.script_flush()
        await store.close()

    asyncio.run(check())


def test_a_refusal_is_a_store_error_and_no_loss(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, timeout_s=PATIENT_S)
        async with Redis.from_url(server.url) as client:
            await client.lpush("tokenwire:1:n:list", "x")
        for _ in range(10):
            with pytest.raises(StoreError, match="WRONGTYPE"):
                await store.get("n", "list")
        assert await store.get("n", "k") is None
        await store.close()

    asyncio.run(check())


def test_a_replica_is_left_for_the_next_address(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, timeout_s=PATIENT_S)
        async with Redis.from_url(server.url) as client:
            await client.execute_command("REPLICAOF", "127.0.0.1", "1")
            with pytest.raises(StoreError, match="replica"):
                await store.set("n", "k", b"v")
            await client.execute_command("REPLICAOF", "NO", "ONE")
        await store.set("n", "k", b"v")
        assert await store.get("n", "k") == b"v"
        await store.close()

    asyncio.run(check())


def test_prefixes_keep_deployments_apart(own_valkey):
    server = own_valkey()

    async def check():
        ours, theirs = (store_at(server, PATIENT_S, prefix=prefix) for prefix in ("a", "a.b"))
        await ours.set("n", "k", b"ours")
        assert await theirs.get("n", "k") is None
        assert await theirs.keys("n") == ()
        await ours.close()
        await theirs.close()

    asyncio.run(check())


def test_more_calls_than_connections_wait_for_one(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, PATIENT_S, connections=2)
        counts = await asyncio.gather(*(store.apply(Incr(), "n", "c") for _ in range(50)))
        assert sorted(counts) == list(range(1, 51))
        async with Redis.from_url(server.url) as client:
            assert len(await client.client_list()) <= 3
        await store.close()

    asyncio.run(check())


def test_of_an_internal_name_every_address_is_tried_and_asked_for_anew(own_valkey):
    first, second = own_valkey(), own_valkey()
    asked = []

    async def resolve(endpoint):
        asked.append(endpoint)
        return tuple(Endpoint("127.0.0.1", server.port) for server in (first, second))

    async def check():
        first.kill()
        settings = RedisSettings(endpoint="internal://redis-svc:6379", timeout_s=5.0)
        store = RedisStore(settings, resolve=resolve)
        await store.set("n", "k", b"second")
        assert asked == [Endpoint("redis-svc", 6379)]
        first.start()
        second.kill()
        assert await until_it_works(store) is None
        assert len(asked) > 1
        await store.close()

    asyncio.run(check())


def test_a_name_that_nobody_knows_is_a_store_error():
    async def resolve(endpoint):
        raise OSError(f"no address for {endpoint.host}")

    async def check():
        store = RedisStore(RedisSettings(endpoint="internal://nowhere:1"), resolve=resolve)
        with pytest.raises(StoreError, match="no address for nowhere"):
            await store.get("n", "k")
        await store.close()

    asyncio.run(check())


def test_a_cancelled_call_leaves_no_answer_for_the_next(own_valkey):
    server = own_valkey()

    async def check():
        store = store_at(server, PATIENT_S, connections=1)
        await store.set("n", "a", b"a")
        await store.set("n", "b", b"b")
        for turn in range(20):
            call = asyncio.create_task(store.get("n", "a"))
            for _ in range(turn):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            assert await store.get("n", "b") == b"b"
        await store.close()

    asyncio.run(check())
