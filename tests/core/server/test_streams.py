"""Streams over both servers: piece by piece, no faster than the client reads, over when it goes."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

HEAD = b"POST %b HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n"


def ask(server, path: bytes, body: bytes = b"", receive_buffer: int | None = None):
    raw = server.socket(receive_buffer)
    raw.sendall(HEAD % (path, len(body)) + body)
    return raw


def test_pieces_arrive_one_by_one(server):
    """A piece is there before the next is made: the server is asked to wait 0.2 s between them."""
    with ask(server, b"/stream", b'{"events": 4, "pause": 0.2}') as raw:
        data, arrivals = b"", []
        while b"0\r\n\r\n" not in data[-5:]:
            part = raw.recv(65536)
            arrivals += [time.monotonic()] * part.count(b"data: ")
            data += part
    assert len(arrivals) == 4
    assert all(later > earlier for earlier, later in pairwise(arrivals))
    assert b"transfer-encoding: chunked" in data.lower()


def test_connection_is_kept_after_a_stream(server):
    body = b'{"events": 2, "pause": 0}'
    with ask(server, b"/stream", body) as raw:
        for _ in range(2):
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                data += raw.recv(65536)
            assert data.count(b"data: ") == 2
            raw.sendall(HEAD % (b"/stream", len(body)) + body)
        raw.recv(65536)


@pytest.mark.parametrize("path", [b"/hang", b"/hang?stream"])
def test_a_client_that_goes_is_noticed(server, path):
    before = server.seen()["gone"]
    raw = ask(server, path)
    server.wait(lambda: server.seen()["running"] == 2)  # this one, and /seen itself
    raw.close()
    server.wait(lambda: server.seen()["gone"] == before + 1)
    server.wait(lambda: server.seen()["running"] == 1)


def test_sending_to_a_client_that_has_gone_raises(server):
    before = server.seen()["gone"]
    raw = ask(server, b"/flood")
    raw.recv(1000)
    raw.close()
    server.wait(lambda: server.seen()["gone"] == before + 1)


def test_a_slow_reader_holds_the_sender(server):
    """200 MB are offered; what is sent is bounded by what buffers hold, a few MB."""
    raw = ask(server, b"/flood", receive_buffer=8192)
    try:
        sent = -1.0
        while (now := server.seen()["flooded"]) != sent or now == 0:
            sent = now
            time.sleep(0.3)
        assert 0 < sent < 20_000_000
        for _ in range(200):
            raw.recv(1 << 20)
        server.wait(lambda: server.seen()["flooded"] > sent)
    finally:
        raw.close()
    server.wait(lambda: server.seen()["running"] == 1)
