"""The bound on a request's head under uvicorn: what it ends, and what it leaves alone."""

from __future__ import annotations

import asyncio

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from tokenwire.core.server.patient_h11 import HEAD_TIMEOUT_S, PatientH11
from tokenwire.core.server.servers import HEAD_TIMEOUT_MS

REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n"


class Hasty(PatientH11):
    patience_s = 0.01


async def echo(scope, receive, send):
    body = (await receive())["body"]
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def converse(protocol, talk):
    """Runs `talk(reader, writer, connections)` with one connection to a server of `protocol`."""

    async def go():
        loop, state = asyncio.get_running_loop(), ServerState()
        config = Config(echo, lifespan="off", ws="none", log_config=None, timeout_keep_alive=30)
        server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
        async with server, asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            try:
                await talk(reader, writer, state.connections)
            finally:
                writer.close()
                await writer.wait_closed()

    asyncio.run(go())


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nhost: x\r\n"])
def test_a_head_that_does_not_end_is_dropped(begun):
    async def talk(reader, writer, connections):
        writer.write(begun)
        assert await reader.read() == b""

    converse(Hasty, talk)


def test_so_is_that_of_a_later_request():
    async def talk(reader, writer, connections):
        writer.write(REQUEST + b"ab")
        assert (await reader.readuntil(b"ab")).startswith(b"HTTP/1.1 200")
        writer.write(REQUEST[:20])
        assert await reader.read() == b""

    converse(Hasty, talk)


def test_a_whole_head_ends_the_wait_and_a_drop_of_it_does_not():
    async def talk(reader, writer, connections):
        while not connections:
            await asyncio.sleep(0)
        (connection,) = connections
        first = connection.head_timer
        connection.data_received(REQUEST[:20])
        connection.data_received(REQUEST[20:30])
        assert connection.head_timer is first
        connection.data_received(REQUEST[30:])
        assert connection.head_timer is None  # the body has the edge's own bound
        assert first.cancelled()
        writer.write(b"ab")
        assert (await reader.readuntil(b"ab")).startswith(b"HTTP/1.1 200")

    converse(PatientH11, talk)


def test_both_servers_have_the_same_patience():
    assert HEAD_TIMEOUT_MS == HEAD_TIMEOUT_S * 1000
