"""The shared store's own promises: many clients, broken ones cut off, losses bounded and mended."""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Incr, Store
from tokenwire.core.server.shared_frames import Get, Reply, Request, decode, encode
from tokenwire.core.server.shared_server import SharedStoreServer
from tokenwire.core.server.shared_store import SharedStore
from tokenwire.plugins.cache.memory.store import MemoryStore

PATIENT_S = 20.0


def memory():
    return MemoryStore(max_bytes=1 << 24)


@asynccontextmanager
async def serving(path, store=None, **settings):
    server = SharedStoreServer(store or memory(), path, **settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def client(path, timeout_s=PATIENT_S):
    store = SharedStore(path, timeout_s=timeout_s)
    try:
        yield store
    finally:
        await store.close()


def fails_at_once(coroutine):
    with pytest.raises(StoreError):
        coroutine.send(None)


async def until_it_works(store):
    async with asyncio.timeout(PATIENT_S):
        while True:
            try:
                return await store.get("n", "k")
            except StoreError:
                await asyncio.sleep(0.02)


def run(check):
    async def bounded():
        async with asyncio.timeout(2 * PATIENT_S):
            await check()

    asyncio.run(bounded())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


def test_only_its_user_may_open_it_and_it_is_gone_after(path):
    async def check():
        async with serving(path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert not path.exists()

    run(check)


def test_many_clients_share_one_store(path):
    async def check():
        async with serving(path):
            clients = [SharedStore(path, timeout_s=PATIENT_S) for _ in range(8)]
            calls = (store.apply(Incr(), "n", "c") for store in clients for _ in range(25))
            assert sorted(await asyncio.gather(*calls)) == list(range(1, 201))
            for store in clients:
                await store.close()

    run(check)


def test_calls_are_pipelined_over_one_connection(path):
    connections, seen = [], []

    async def check():
        async def serve(reader, writer):
            connections.append(writer)
            # Why: answering only when ten have come shows that none waits for another.
            for _ in range(10):
                size = int.from_bytes(await reader.readexactly(4), "little")
                seen.append(decode(await reader.readexactly(size), Request))
            for request in reversed(seen):
                writer.write(encode(Reply(request.id, value=request.key)))

        server = await asyncio.start_unix_server(serve, path)
        async with client(path) as store:
            keys = [str(n) for n in range(10)]
            got = await asyncio.gather(*(store.get("n", key) for key in keys))
            assert got == [key.encode() for key in keys]
        assert len(connections) == 1
        for writer in connections:
            writer.close()
        server.close()

    run(check)


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        b"\x03\0\0\0abc",
        b"\x00\0\0\0",
        encode(Reply(1)),
        b"\x06\0\0\0" + msgspec.msgpack.encode(["get", 1]),
    ],
)
def test_whoever_sends_nonsense_is_cut_off_alone(path, frame):
    async def check():
        async with serving(path), client(path) as store:
            await store.set("n", "k", b"v")
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(frame)
            assert await reader.read() == b""
            writer.close()
            assert await store.get("n", "k") == b"v"

    run(check)


def test_a_name_that_is_no_text_is_answered_with_an_error(path):
    async def check():
        async with serving(path):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(encode(Get(7, b"\xff", b"k")))
            size = int.from_bytes(await reader.readexactly(4), "little")
            reply = decode(await reader.readexactly(size), Reply)
            assert (reply.id, reply.error is not None) == (7, True)
            writer.close()

    run(check)


def test_too_large_a_call_or_answer_is_refused_and_hurts_nobody(path):
    async def check():
        store = memory()
        await store.set("n", "large", b"x" * 2000)
        async with serving(path, store, max_frame=1000), client(path) as shared:
            with pytest.raises(StoreError, match="1000 bytes"):
                await shared.get("n", "large")
            assert await shared.get("n", "k") is None

    run(check)
    with pytest.raises(StoreError, match="takes 10 bytes"):
        encode(Get(1, b"n", b"k" * 20), max_frame=10)


def test_a_failing_store_is_told_and_a_bug_in_it_is_not(path):
    class Bad(Store):
        async def get(self, namespace, key):
            raise ValueError("inside") if key == "bug" else StoreError("lost below")

        async def set(self, namespace, key, value, *, ttl_s=None): ...
        async def delete(self, namespace, key): ...
        async def keys(self, namespace): ...
        async def apply(self, op, namespace, key): ...
        async def close(self): ...

    async def check():
        async with serving(path, Bad()), client(path) as shared:
            with pytest.raises(StoreError, match="lost below"):
                await shared.get("n", "k")
            with pytest.raises(StoreError, match="internal error") as caught:
                await shared.get("n", "bug")
            assert "inside" not in str(caught.value)

    run(check)


def test_a_dead_servers_socket_is_taken_over_and_a_living_ones_is_not(path):
    async def check():
        async with serving(path) as first:
            second = SharedStoreServer(memory(), path)
            with pytest.raises(StoreError, match="another server"):
                await second.start()
            first._server.close()
            async with serving(path), client(path) as store:
                assert await store.get("n", "k") is None

    run(check)


def test_what_is_no_socket_is_left_alone(path):
    path.write_text("mine")
    server = SharedStoreServer(memory(), path)
    with pytest.raises(StoreError, match="cannot serve"):
        asyncio.run(server.start())
    assert path.read_text() == "mine"


def test_a_server_that_stops_and_starts_is_found_again(path):
    async def check():
        owned = memory()
        async with client(path) as store:
            async with serving(path, owned):
                await store.set("n", "k", b"v")
            for _ in range(3):
                with pytest.raises(StoreError, match="not reachable"):
                    await store.get("n", "k")
            fails_at_once(store.get("n", "k"))
            async with serving(path, owned):
                assert await until_it_works(store) == b"v"

    run(check)


def test_a_server_that_answers_nothing_costs_time_thrice_and_then_none(path):
    async def check():
        silent = asyncio.Event()

        async def serve(reader, writer):
            await silent.wait()
            writer.close()

        server = await asyncio.start_unix_server(serve, path)
        async with client(path, timeout_s=0.02) as store:
            for _ in range(3):
                with pytest.raises(StoreError):
                    await store.get("n", "k")
            for _ in range(100):
                fails_at_once(store.apply(Incr(), "n", "k"))
        silent.set()
        server.close()

    run(check)


def test_what_waits_when_the_connection_ends_fails(path):
    async def check():
        async def serve(reader, writer):
            await reader.readexactly(4)
            writer.close()

        server = await asyncio.start_unix_server(serve, path)
        async with client(path) as store:
            calls = (store.get("n", "k") for _ in range(3))
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(answer, StoreError)
        server.close()

    run(check)


def test_closed_it_refuses(path):
    async def check():
        async with serving(path):
            async with client(path) as store:
                await store.get("n", "k")
            with pytest.raises(StoreError, match="closed"):
                await store.get("n", "k")

    run(check)


@given(st.binary(max_size=64))
def test_any_bytes_decode_to_a_request_or_a_store_error(body):
    with suppress(StoreError):
        decode(body, Request)
