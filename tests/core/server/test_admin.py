"""Admin routes that depend on what is served and how."""

from __future__ import annotations

import json

import pytest

SERVERS = pytest.mark.parametrize("http", ["granian", "uvicorn"])


@SERVERS
def test_scripts_can_be_put_and_read_where_a_mock_is_served(launch, http):
    server = launch("open_scripted", http=http).wait_started()
    with server.client() as client:
        body = json.dumps({"pieces": ["Hello", " there"]})
        reply = client.put("/mock/scripts/greeting", content=body)
        assert reply.status_code == 200, reply.text
        assert reply.json()["name"] == "greeting"
        assert client.get("/mock/scripts/greeting").json()["finish"] == "eos"
        assert client.get("/mock/scripts/other").status_code == 404
        broken = client.put("/mock/scripts/broken", content=b'{"pieces": 5}')
        assert broken.status_code == 400
        assert "pieces" in broken.json()["error"]["message"]
        assert client.put("/mock/scripts/none", content=b"").status_code == 400
        assert "/mock/scripts/{name}" in client.get("/openapi.json").json()["paths"]
    assert server.stop() == 0
    assert "Traceback" not in server.log


@SERVERS
def test_what_is_not_ready_says_why_but_lives(launch, http):
    server = launch("open_unready", http=http).wait_started()
    with server.client() as client:
        reply = client.get("/ready")
        assert reply.status_code == 503
        assert reply.json()["reason"] == "m: its engine is loading"
        assert client.get("/health").status_code == 200
        assert client.get("/debug/prompts/known").status_code == 404


@SERVERS
def test_scripts_are_listed_and_forgotten(launch, http):
    server = launch("open_scripted", http=http).wait_started()
    with server.client() as client:
        assert client.get("/mock/scripts").json() == {"scripts": []}
        for name in ("b", "a"):
            client.put(f"/mock/scripts/{name}", content=b'{"pieces": ["x"]}')
        assert client.get("/mock/scripts").json() == {"scripts": ["a", "b"]}
        gone = client.delete("/mock/scripts/a")
        assert (gone.status_code, gone.json()) == (200, {"name": "a"})
        assert client.delete("/mock/scripts/a").status_code == 404
        assert client.get("/mock/scripts").json() == {"scripts": ["b"]}
        assert client.post("/mock/scripts/b").status_code == 405
        allowed = client.options("/mock/scripts/b").headers["allow"]
        assert set(allowed.split(", ")) == {"DELETE", "GET", "OPTIONS", "PUT"}


def test_a_store_that_is_not_there_is_503_in_words(launch):
    server = launch("open_storeless").wait_started()
    with server.client() as client:
        for reply in (
            client.put("/mock/scripts/a", content=b'{"pieces": ["x"]}'),
            client.get("/mock/scripts"),
            client.delete("/mock/scripts/a"),
        ):
            assert reply.status_code == 503
            assert "the store that keeps this cannot be reached" in reply.text
            assert "secret-host" not in reply.text
            assert reply.headers["retry-after"] == "1"
    assert server.stop() == 0
    assert "secret-host" in server.log
    assert "Traceback" not in server.log


@SERVERS
def test_a_body_that_never_comes_is_refused_in_time(launch, http):
    server = launch(http=http, request_timeout=0.3).wait_started()
    with server.socket() as raw:
        raw.sendall(b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 50\r\n\r\nabc")
        answer = b""
        while b"}" not in answer and (part := raw.recv(65536)):
            answer += part
        assert b" 400 " in answer
        assert b"did not arrive within 0.3 s" in answer
    assert server.stop() == 0
