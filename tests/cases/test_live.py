"""All cases once more over real HTTP: one server process, one cutting each, unary and streamed.

What a case expects has been asserted of the stage's answers; the server must give the same. And the
failures that only a server can have: of encodings, content types, origins, held-back streams.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from tests.cases import checks
from tests.cases.cutting import Script
from tests.cases.outputs import OUTPUTS
from tests.cases.shared import asked, bodies, every, is_played, paths
from tests.cases.stage import CHAT, COMPLETIONS, FORMATS, HINTS, MESSAGES, Played, Stage
from tests.clients.live import LiveServer, live_server
from tokenwire.core.testing.client import Response

ORIGIN = "https://app.example"
LONGEST = 20_000
MEBI = 1 << 20
ASKED = {"model": "plain", "messages": [{"role": "user", "content": "x"}]}

Job = tuple[str, dict[str, Any], Script | None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    models = [
        {
            "name": name,
            "engine": {"plugin": "mock", "context_length": 8192},
            "tokenizer": "script",
            "dialect": name,
        }
        for name in FORMATS
    ]
    config = {
        "server": {"http": "granian", "cors": {"origins": [ORIGIN]}, "max_body": MEBI},
        "models": models,
    }
    with live_server(json.dumps(config), tmp_path_factory.mktemp("cases")) as live:
        yield live


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


def _jobs() -> Iterator[Job]:
    for case in every():
        script = case.get("model_output")
        if script and script.get("grammar"):
            continue  # Of what an engine writes that has one: see test_shared_cases.py.
        if not is_played(case) or len(json.dumps(case)) > LONGEST or _is_huge(script):
            continue
        for path in paths(case):
            for body in bodies(case):
                given = asked(path, body, case)
                if given is not None and "previous_response_id" not in given:
                    yield path, given, script
    for output in OUTPUTS:
        yield CHAT, output.asked, output.told


def _is_huge(script: Any) -> bool:
    pieces = (script or {}).get("pieces", ())
    return any(isinstance(piece, dict) and piece.get("times", 1) > 1000 for piece in pieces)


def test_every_case_over_http(stage: Stage, http: httpx.Client) -> None:
    played = 0
    for path, body, script in _jobs():
        headers: dict[str, str] = {}
        if script is not None:
            told = {key: script[key] for key in script if key not in HINTS}
            http.put("/mock/scripts/case", json=told).raise_for_status()
            headers["x-mock-script"] = "case"
        for stream in (False, True):
            request = {**body, "stream": stream}
            if stream and path in (CHAT, COMPLETIONS):
                request["stream_options"] = {"include_usage": True}
            given = http.post(path, content=msgspec.json.encode(request), headers=headers)
            answer = Played(path, _response(given))
            checks.isolation([stage.play(path, request, script)], [answer])
            checks.no_leak(answer.response)
            if not (script and script.get("finish") == "abort"):
                checks.client_fault(path, answer.response)
            played += 1
    assert played > 2 * len(OUTPUTS)


def _response(given: httpx.Response) -> Response:
    return Response(given.status_code, dict(given.headers), (given.content,))


# --- what only a server can get wrong ------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_compressed_bodies(http: httpx.Client, path: str) -> None:
    """TR-04: decoded within the bound of a body, or refused in the protocol's words."""
    data = json.dumps({**ASKED, "max_tokens": 5}).encode()
    cases = [
        (gzip.compress(data), "gzip", {200}),
        (data, "br", {415}),
        (data, "zstd", {415}),
        (gzip.compress(b" " * 64 * MEBI + data), "gzip", {413}),
        (gzip.compress(data)[:-9], "gzip", {400}),
        (data, "gzip", {400}),
    ]
    for content, encoding, statuses in cases:
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        response = http.post(path, content=content, headers=headers)
        assert response.status_code in statuses, encoding
        checks.client_fault(path, _response(response))
        if response.status_code == 415:
            assert "gzip" in response.headers["accept-encoding"]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        (None, {200, 415}),
        ("text/plain", {200, 415}),
        ("application/json; charset=utf-8", {200}),
        ("application/vnd.api+json", {200}),
    ],
)
def test_content_types(http: httpx.Client, path: str, kind: str | None, statuses: set[int]) -> None:
    """TR-06."""
    headers = {} if kind is None else {"content-type": kind}
    data = json.dumps({**ASKED, "max_tokens": 5}).encode()
    response = http.post(path, content=data, headers=headers)
    assert response.status_code in statuses
    checks.client_fault(path, _response(response))


def test_other_origins(http: httpx.Client) -> None:
    """TR-07: asked first and without a key; refusals and streams may be read, too."""
    wanted = "authorization,content-type,x-api-key,anthropic-version,anthropic-beta"
    asks = {
        "origin": ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": wanted,
    }
    for path in (CHAT, MESSAGES):
        reply = http.options(path, headers=asks)
        assert reply.status_code in (200, 204)
        assert reply.headers["access-control-allow-origin"] == ORIGIN
        allowed = reply.headers["access-control-allow-headers"].lower()
        assert allowed == "*" or set(wanted.split(",")) <= set(allowed.replace(" ", "").split(","))
    for body in ({"model": "plain"}, {**ASKED, "stream": True}):
        reply = http.post(CHAT, json=body, headers={"origin": ORIGIN})
        assert reply.headers["access-control-allow-origin"] == ORIGIN
        assert "access-control-allow-credentials" not in reply.headers
    stranger = http.options(CHAT, headers={**asks, "origin": "https://other.example"})
    assert "access-control-allow-origin" not in stranger.headers


def test_streams_are_not_held_back(http: httpx.Client) -> None:
    """TR-09: the first text is here while the engine makes nothing and will make more later."""
    script = {"pieces": ["a", {"sleep_s": 30}, "b"], "finish": "eos"}
    http.put("/mock/scripts/slow", json=script).raise_for_status()
    headers = {"accept-encoding": "gzip", "x-mock-script": "slow"}
    with http.stream("POST", CHAT, json={**ASKED, "stream": True}, headers=headers) as response:
        assert "content-encoding" not in response.headers
        seen = ""
        for text in response.iter_text():
            seen += text
            if '"content":"a"' in seen:
                break
        assert '"content":"b"' not in seen


def test_a_closed_socket_ends_the_work(server: LiveServer, http: httpx.Client) -> None:
    """The engine is told; the metrics say when nothing runs any more."""
    script = {"pieces": [{"repeat": "x ", "times": 5}, {"sleep_s": 60}, "b"], "finish": "eos"}
    http.put("/mock/scripts/endless", json=script).raise_for_status()
    place = urlsplit(server.url)
    body = json.dumps({**ASKED, "stream": True}).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: {place.netloc}\r\nx-mock-script: endless\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((str(place.hostname), int(place.port or 0)), 30) as line:
        line.sendall(head.encode() + body)
        seen = b""
        while b'"content"' not in seen:
            seen += line.recv(4096)
        assert _running(http) > 0
    for _ in range(3000):
        if _running(http) == 0:
            return
    raise AssertionError("the engine still runs for a client that has gone")


def _running(http: httpx.Client) -> float:
    text = http.get("/metrics").text
    values = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("tokenwire_engine_running")
    ]
    assert values, text[:500]
    return sum(values)
