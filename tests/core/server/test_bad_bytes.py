"""Broken requests: each is refused or dropped, and the server serves the next one."""

from __future__ import annotations

import pytest

OVER = b"a" * 200_000
POST = b"POST /echo HTTP/1.1\r\nHost: t\r\n"

BROKEN = {
    "garbage": b"\x00\xff\x16\x03\x01 garbage\r\n\r\n",
    "not HTTP": b"hello there\r\n\r\n",
    "version": b"GET /health HTTP/one\r\n\r\n",
    "long header": b"GET /health HTTP/1.1\r\nHost: t\r\nX: " + OVER + b"\r\n\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n"
    + b"".join(b"X%d: %b\r\n" % (k, b"a" * 100) for k in range(1500))
    + b"\r\n",
    "long path": b"GET /" + OVER + b" HTTP/1.1\r\nHost: t\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "no number": POST + b"Content-Length: five\r\n\r\nabcde",
    "negative": POST + b"Content-Length: -5\r\n\r\nabcde",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_request_is_refused_and_kills_nothing(server, name):
    with server.socket() as raw:
        try:
            raw.sendall(BROKEN[name])
            answer = raw.recv(65536)
        except OSError:
            answer = b""
        assert answer == b"" or answer[9:10] == b"4", answer[:200]
    with server.client() as client:
        assert client.get("/health").status_code == 200


def test_body_that_breaks_off_never_reaches_the_flow(server):
    with server.socket() as raw:
        raw.sendall(POST + b"Content-Length: 50\r\n\r\nabc")
        raw.shutdown(1)
        assert b"200" not in raw.recv(65536)[:20]
    server.wait(lambda: server.seen()["running"] == 1)


@pytest.mark.parametrize(
    "target", [b"/health%ff%00", b"//", b"/../health", b"*", b"http://x/health"]
)
def test_odd_targets_get_an_answer(server, target):
    with server.socket() as raw:
        raw.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        answer = raw.recv(65536)
        assert answer[9:12] in {b"200", b"400", b"404"}, answer[:200]


def test_header_bytes_beyond_ascii_do_no_harm(server):
    with server.socket() as raw:
        raw.sendall(POST + b"X-Odd: caf\xe9\r\nContent-Length: 0\r\n\r\n")
        assert b" 200 " in raw.recv(65536)


def test_broken_chunks_kill_nothing(server):
    """uvicorn refuses them; granian gives what came before (see RsgiExchange)."""
    for chunks in (b"ZZ\r\nabc", b"3\r\nabc\r\nZZ\r\n", b"5\r\nab"):
        with server.socket() as raw:
            raw.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
            raw.shutdown(1)
            raw.recv(65536)
    with server.client() as client:
        assert client.get("/health").status_code == 200
