"""The kernel's word on what a client has not taken."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress

import pytest

from tokenwire.core.server.send_queue import LONG, SendQueues

linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, peer = listener.accept()
        with client, server:
            yield server, client, f"{peer[0]}:{peer[1]}"


@linux
def test_length_grows_when_nobody_reads_and_falls_when_somebody_does(pair):
    server, client, name = pair
    queues = SendQueues()
    assert queues.length(name) == 0
    server.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            server.send(b"x" * 65536)
    assert queues.length(name) > LONG

    async def drained() -> None:
        waiting = asyncio.ensure_future(queues.settled(name))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        client.setblocking(False)
        while not waiting.done():
            try:
                client.recv(1 << 20)
            except BlockingIOError:
                await asyncio.sleep(0.001)
        await waiting

    asyncio.run(drained())
    assert queues.length(name) <= LONG


@linux
def test_a_connection_that_is_gone_has_no_queue(pair):
    server, client, name = pair
    queues = SendQueues()
    assert queues.length(name) == 0
    client.close()
    server.close()
    assert queues.length(name) == 0
    assert queues.length("127.0.0.1:1") == 0
    assert queues.length("nonsense") == 0
