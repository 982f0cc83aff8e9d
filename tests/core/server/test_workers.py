"""Several workers: one store, one key, figures that add up, the dead replaced."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [
        int(child)
        for child in text.split()
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def figure(server, name: str) -> float:
    with server.client() as client:
        text = client.get("/metrics").text
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))


@pytest.fixture(params=["granian", "uvicorn"])
def pair(launch, request):
    return launch(http=request.param, workers=2, drain_timeout=30).wait_started()


def echo(server, times: int) -> set[str]:
    """Calls on fresh connections; which processes answered."""
    answered = set()
    for _ in range(times):
        with server.client() as client:
            client.post("/echo", content=b"x").raise_for_status()
            answered.add(client.get("/seen").json()["process"])
    return answered


def test_figures_of_all_workers_add_up(pair):
    answered = set()
    calls = 0
    while len(answered) < 2 and calls < 500:
        answered |= echo(pair, 10)
        calls += 10
    assert len(answered) == 2
    pair.wait(lambda: figure(pair, "tokenwire_requests_total") == calls)
    assert figure(pair, "tokenwire_prompt_tokens_total") == 7 * calls
    assert figure(pair, "tokenwire_inter_token_seconds_count") == 8 * calls
    assert figure(pair, "tokenwire_workers") == 2
    assert figure(pair, "tokenwire_engine_running") == 4
    assert pair.stop() == 0, pair.log


def test_a_dead_worker_is_replaced_and_its_counts_stay(pair):
    echo(pair, 20)
    pair.wait(lambda: figure(pair, "tokenwire_requests_total") == 20)
    pair.wait(lambda: len(children(pair.process.pid)) == 2)
    os.kill(children(pair.process.pid)[0], signal.SIGKILL)
    pair.wait(lambda: "another takes its place" in pair.log)
    pair.wait(lambda: len(children(pair.process.pid)) == 2)
    echo(pair, 10)
    pair.wait(lambda: figure(pair, "tokenwire_requests_total") == 30)
    pair.wait(lambda: figure(pair, "tokenwire_workers") == 2)
    assert pair.stop() == 0, pair.log


def test_workers_share_one_store_and_one_key(pair):
    names = set()
    keys = set()
    for _ in range(200):
        with pair.client() as client:
            told = client.get("/store").json()
        names.add(told["process"])
        keys.add(told["key"])
        if len(names) == 2:
            break
    assert len(names) == 2
    assert len(keys) == 1
    assert told["count"] > 1
    with pair.client() as client:
        assert client.get("/store").json()["count"] == told["count"] + 1
    assert "server.keys is not set" in pair.log
    assert pair.stop() == 0, pair.log


def test_streams_end_before_the_workers_do(pair):
    with pair.socket() as raw:
        body = b'{"events": 10, "pause": 0.1}'
        head = b"POST /stream HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % len(body)
        raw.sendall(head + body)
        data = raw.recv(65536)
        pair.process.send_signal(signal.SIGTERM)
        while part := raw.recv(65536):
            data += part
    assert data.count(b"data: ") == 10
    assert pair.process.wait(60) == 0, pair.log


def test_workers_end_when_their_supervisor_is_killed(pair):
    workers = children(pair.process.pid)
    pair.process.kill()
    pair.process.wait()
    pair.wait(lambda: not any(is_running(worker) for worker in workers))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
