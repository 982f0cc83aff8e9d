"""Parameters of a query string that nothing reads are listed, on calls and on questions alike."""

from __future__ import annotations

import json

import pytest

from tests.flow.wired import HELLO, model, serving
from tokenwire.core.wire import HttpRequest

HEADER = "x-tokenwire-ignored"


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("", None),
        ("beta=true", "?beta"),
        ("a=1&b&a=2", "?a, ?b"),
        ("x%0d%0ay=1", "?x??y"),
        ("&".join(f"a{k}=1" for k in range(99)), "?"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_of_a_call(query: str, listed: str | None, stream: bool) -> None:
    body = json.dumps(HELLO | {"stream": stream}).encode()
    with serving(model()) as (client, _):
        response = client.send(HttpRequest("POST", "/v1/chat/completions", {}, query, body))
    assert response.status == 200
    assert response.headers.get(HEADER) == listed


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "listed"),
    [
        ("GET", "/v1/models", "limit=3&order=asc", b"", "?order"),
        ("GET", "/v1/models/m", "limit=3", b"", "?limit"),
        ("GET", "/v1/capabilities", "x=1", b"", "?x"),
        ("POST", "/render", "protocol=chat_completions", json.dumps(HELLO).encode(), None),
        ("POST", "/tokenize", "spell", b'{"prompt": "a"}', "?spell"),
        ("POST", "/v1/conversations", "x=1", b"{}", "?x"),
    ],
)
def test_of_a_question(method: str, path: str, query: str, body: bytes, listed: str | None) -> None:
    with serving(model()) as (client, _):
        response = client.send(HttpRequest(method, path, {}, query, body))
    assert response.status == 200, response.body
    assert response.headers.get(HEADER) == listed


def test_of_a_stored_response() -> None:
    with serving(model()) as (client, _):
        made = client.post("/v1/responses", {"model": "m", "input": "hi"})
        id_ = json.loads(made.body)["id"]
        for path, query, listed in (
            (f"/v1/responses/{id_}", "include=a", "?include"),
            (f"/v1/responses/{id_}", "stream=false", None),
            (f"/v1/responses/{id_}/input_items", "limit=3&order=asc", None),
        ):
            found = client.send(HttpRequest("GET", path, {}, query))
            assert found.status == 200, found.body
            assert found.headers.get(HEADER) == listed
