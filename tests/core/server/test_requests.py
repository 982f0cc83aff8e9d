"""What both servers do alike with whole requests."""

from __future__ import annotations

import gzip
import json

import pytest

ORIGIN = {"origin": "https://app.example"}


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def test_request_reaches_the_flow_as_it_was_sent(client):
    told = client.post("/echo?a=%20b", content=b"hello", headers={"X-Mixed": "Case"}).json()
    assert told["method"] == "POST"
    assert told["path"] == "/echo"
    assert told["query"] == "a=%20b"
    assert told["body"] == "hello"
    assert told["headers"]["x-mixed"] == "Case"


def test_repeated_headers_are_joined(client):
    headers = [("x-two", "a"), ("X-Two", "b"), ("cookie", "a=1"), ("cookie", "b=2")]
    told = client.post("/echo", headers=headers).json()
    assert told["headers"]["x-two"] == "a, b"
    assert told["headers"]["cookie"] == "a=1; b=2"


def test_path_is_decoded(client):
    assert client.get("/things/caf%C3%A9%20x").json()["path"] == "/things/café x"


def test_keep_alive_serves_many_requests_on_one_connection(server):
    with server.socket() as raw:
        for k in range(3):
            body = b"n%d" % k
            head = b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % len(body)
            raw.sendall(head + body)
            answer = read_reply(raw)
            assert json.loads(answer)["body"] == body.decode()


def read_reply(raw) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += raw.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += raw.recv(65536)
    assert len(body) == length
    return body


def test_chunked_upload(client):
    told = client.post("/echo", content=iter([b"one ", b"two ", b"three"])).json()
    assert told["body"] == "one two three"


def test_body_at_the_limit_is_taken(client):
    assert client.post("/echo", content=b"x" * 100_000).json()["length"] == 100_000


@pytest.mark.parametrize("chunked", [False, True])
def test_body_over_the_limit_is_413_in_the_protocols_shape(client, chunked):
    parts = [b"x" * 50_000, b"x" * 50_001]
    reply = client.post("/echo", content=iter(parts) if chunked else b"".join(parts))
    assert reply.status_code == 413
    assert "100000 bytes" in reply.json()["oops"]
    assert client.post("/echo", content=b"after").json()["body"] == "after"


@pytest.mark.parametrize("path", ["/echo", "/health"])
def test_a_refusal_has_an_id_of_ours_in_both_headers(client, path):
    sent = {"x-request-id": "mine", "request-id": "mine"}
    replies = [client.post(path, content=b"x" * 100_001, headers=sent) for _ in range(2)]
    ids = {reply.headers["x-request-id"] for reply in replies}
    assert len(ids) == 2
    for reply in replies:
        request_id = reply.headers["request-id"]
        assert request_id in ids
        assert request_id.startswith("req_")
        assert reply.json().get("id", request_id) == request_id


def test_declared_length_over_the_limit_is_refused_unread(server):
    with server.socket() as raw:
        raw.sendall(b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in raw.recv(65536)


@pytest.mark.parametrize("head", [b"Content-Length: 100001", b"Content-Encoding: br"])
def test_a_refusal_that_leaves_the_body_unread_says_that_the_connection_ends(server, head):
    with server.socket() as raw:
        start = b"POST /echo HTTP/1.1\r\nHost: t\r\nConnection: keep-alive\r\n"
        length = b"" if b"Length" in head else b"\r\nContent-Length: 3"
        raw.sendall(start + head + length + b"\r\n\r\n")
        answer = b""
        while part := raw.recv(65536):
            answer += part
        assert b"\r\nconnection: close\r\n" in answer.partition(b'{"')[0].lower()


def test_a_refusal_of_a_body_that_was_read_keeps_the_connection(client):
    reply = client.post("/echo", content=b"no gzip", headers={"content-encoding": "gzip"})
    assert (reply.status_code, reply.headers.get("connection")) == (400, None)


def test_gzip_body_is_inflated(client):
    headers = {"content-encoding": "gzip"}
    told = client.post("/echo", content=gzip.compress(b"packed"), headers=headers).json()
    assert told["body"] == "packed"
    assert "content-encoding" not in told["headers"]
    assert "content-length" not in told["headers"]


def test_gzip_bomb_is_413(client):
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    reply = client.post("/echo", content=bomb, headers={"content-encoding": "gzip"})
    assert reply.status_code == 413


@pytest.mark.parametrize(
    ("coding", "body", "status", "words"),
    [
        ("gzip", b"plain", 400, "not gzip"),
        ("gzip", gzip.compress(b"cut", mtime=0)[:-4], 400, "breaks off"),
        ("br", b"x", 415, "gzip"),
        ("gzip, gzip", b"x", 415, "gzip"),
    ],
)
def test_bad_content_encodings_are_refused_in_words(client, coding, body, status, words):
    reply = client.post("/echo", content=body, headers={"content-encoding": coding})
    assert reply.status_code == status
    assert words in reply.json()["oops"]
    assert reply.headers.get("accept-encoding") == ("gzip" if status == 415 else None)


def test_wrong_method_of_a_codec_route_is_the_flows_405(client):
    reply = client.get("/echo")
    assert reply.status_code == 405
    assert reply.headers["allow"] == "POST"
    assert reply.json()["kind"] == "method_not_allowed"


def test_unknown_path_is_404_json(client):
    reply = client.post("/v9/nothing", content=b"{}")
    assert reply.status_code == 404
    assert reply.json()["error"]["type"] == "not_found"
    assert "/v9/nothing" in reply.json()["error"]["message"]


def test_wrong_method_of_an_admin_route_is_405_with_allow(client):
    reply = client.delete("/health")
    assert reply.status_code == 405
    assert "GET" in reply.headers["allow"]
    assert reply.json()["error"]["type"] == "method_not_allowed"


def test_head_is_get_without_a_body(client):
    whole, head = client.get("/health"), client.head("/health")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_options_without_preflight_names_methods(client):
    assert "GET" in client.options("/health").headers["allow"]
    assert client.options("/echo").headers["allow"] == "POST"


def test_a_bug_is_500_and_leaks_nothing(client):
    reply = client.post("/bug", content=b"x")
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert client.post("/echo", content=b"alive").status_code == 200


class TestCors:
    def test_preflight_is_answered_before_anything_else(self, client):
        asked = {
            **ORIGIN,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        }
        reply = client.options("/echo", headers=asked)
        assert reply.status_code == 204
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        assert reply.headers["access-control-allow-methods"] == "POST"
        assert reply.headers["access-control-allow-headers"] == "authorization, content-type"
        assert reply.headers["access-control-max-age"] == "600"

    def test_foreign_preflight_is_refused_in_words(self, client):
        asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        reply = client.options("/echo", headers=asked)
        assert reply.status_code == 403
        assert "server.cors.origins" in reply.text
        assert "access-control-allow-origin" not in reply.headers

    @pytest.mark.parametrize(
        ("method", "path", "content"),
        [
            ("POST", "/echo", b"x"),
            ("POST", "/stream", b'{"events": 1, "pause": 0}'),
            ("POST", "/bug", b"x"),
            ("POST", "/echo", b"x" * 100_001),
            ("GET", "/echo", b""),
            ("GET", "/health", b""),
            ("GET", "/nothing", b""),
        ],
    )
    def test_every_reply_says_who_may_read_it(self, client, method, path, content):
        reply = client.request(method, path, content=content, headers=ORIGIN)
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        assert reply.headers["vary"] == "Origin"
        assert "x-request-id" in reply.headers["access-control-expose-headers"]
        foreign = client.request(
            method, path, content=content, headers={"origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in foreign.headers


class TestAdmin:
    @pytest.mark.parametrize("path", ["/health", "/alive"])
    def test_health(self, client, path):
        assert client.get(path).json()["status"] == "ok"

    def test_ready(self, client):
        reply = client.get("/ready")
        assert reply.status_code == 200
        assert reply.json() == {"ready": True, "models": ["m"]}

    def test_plugins(self, client):
        (row,) = client.get("/plugins").json()["plugins"]
        assert row["name"] == "echo"
        assert row["owner"] == "tests"

    def test_engines(self, client):
        (engine,) = client.get("/engines").json()["engines"].items()
        assert engine[0] == "m"
        assert engine[1]["running"] == 2
        assert engine[1]["kv_blocks_free"] == 5

    def test_openapi_lists_both_kinds_of_routes(self, client):
        paths = client.get("/openapi.json").json()["paths"]
        assert paths["/echo"]["post"]["summary"] == "Say what came"
        assert paths["/things/{thing}"]["get"]["parameters"][0]["name"] == "thing"
        assert {"/health", "/alive", "/ready", "/metrics", "/engines", "/plugins"} <= set(paths)
        assert "/mock/scripts/{name}" not in paths

    def test_scripts_are_not_there_without_a_mock_model(self, client):
        assert client.put("/mock/scripts/x", content=b"{}").status_code == 404

    def test_debug_prompts(self, client):
        prompt = client.get("/debug/prompts/known").json()
        assert prompt["text"] == "hello"
        assert prompt["ids"] == [1, 2]
        assert prompt["spans"][0]["source"] == "client"
        assert client.get("/debug/prompts/other").status_code == 404

    def test_metrics_of_calls_and_engines(self, client):
        client.post("/echo", content=b"x")
        text = client.get("/metrics").text
        assert 'tokenwire_requests_total{model="m",outcome="ok",protocol="echo"}' in text
        assert 'tokenwire_engine_waiting{model="m"} 1.0' in text
        assert 'tokenwire_http_replies_total{protocol="echo",status="200"}' in text
        accept = {"accept": "application/openmetrics-text"}
        assert client.get("/metrics", headers=accept).text.endswith("# EOF\n")
