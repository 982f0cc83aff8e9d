"""The guard `api_keys`: who comes in, as whom, and what tenants cannot see of each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tokenwire.core.call import Identity
from tokenwire.core.config import CacheConfig, Config, ModelConfig, PluginUse
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.host import Host
from tokenwire.core.ports.guard import Guard
from tokenwire.core.secrets import Secret
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.guards.api_keys.guard import LOOK_S, ApiKeys, Settings

OURS, THEIRS, NEXT = "key-of-team-a-0001", "key-of-team-b-0001", "key-of-team-a-0002"
ENVIRON = {"A": OURS, "B": THEIRS}
TWO = Settings({"a": (Secret("env", "A"),), "b": (Secret("env", "B"),)})


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def admit(guard: Guard, **headers: str) -> Identity:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = HttpRequest("POST", "/v1/messages", named, body=b"")
    return asyncio.run(guard.admit(request, Identity(user="u")))


@pytest.mark.parametrize(
    ("headers", "tenant"),
    [
        ({"authorization": f"Bearer {OURS}"}, "a"),
        ({"authorization": f"bearer   {THEIRS} "}, "b"),
        ({"x_api_key": THEIRS}, "b"),
        ({"authorization": f"Bearer {OURS}", "x_api_key": THEIRS}, "a"),
        ({"authorization": "Bearer none", "x_api_key": THEIRS}, "b"),
    ],
)
def test_a_key_names_its_tenant(headers: dict[str, str], tenant: str) -> None:
    assert admit(ApiKeys(TWO, ENVIRON, Clock()), **headers) == Identity(tenant, user="u")


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, "an API key is wanted"),
        ({"authorization": "Bearer "}, "an API key is wanted"),
        ({"authorization": f"Basic {OURS}"}, "an API key is wanted"),
        ({"authorization": OURS}, "an API key is wanted"),
        ({"x_api_key": OURS[:-1]}, "not one of this server's"),
        ({"x_api_key": OURS + "\udcff"}, "not one of this server's"),
        ({"x_api_key": f"{OURS},{THEIRS}"}, "not one of this server's"),
    ],
)
def test_others_are_refused_and_told_what_to_do(headers: dict[str, str], said: str) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        admit(ApiKeys(TWO, ENVIRON, Clock()), **headers)
    assert refused.value.status == 401
    assert "Authorization: Bearer KEY" in refused.value.message
    assert "x-api-key" in refused.value.message
    assert OURS[:-1] not in refused.value.message


def test_without_keys_it_asks_for_none() -> None:
    assert admit(ApiKeys(Settings(), {}, Clock())) == Identity(user="u")


def test_a_file_that_changes_is_taken_up(tmp_path: Path) -> None:
    path, clock = tmp_path / "key", Clock()
    path.write_text(OURS + "\n")
    guard = ApiKeys(Settings({"a": (Secret("file", str(path)),)}), {}, clock)
    path.write_text(NEXT + " and more")
    assert admit(guard, x_api_key=OURS).tenant == "a"
    clock.now += LOOK_S
    assert admit(guard, x_api_key=f"{NEXT} and more").tenant == "a"
    with pytest.raises(RequestError):
        admit(guard, x_api_key=OURS)
    path.write_text("short")
    clock.now += LOOK_S
    assert admit(guard, x_api_key=f"{NEXT} and more").tenant == "a"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"a": ["env:TOKENWIRE_NO_SUCH_KEY"]}, "unset or empty"),
        ({"a": []}, "at least one key"),
        ({"": ["env:HOME"]}, "the name of a tenant"),
        ({"default": ["env:HOME"]}, "the name of a tenant"),
        ({"a": ["file:SHORT"]}, "16 bytes or more"),
        ({"a": ["file:LONG"], "b": ["file:LONG"]}, "is also a key of 'a'"),
        ({"a": [OURS]}, "env:"),
    ],
)
def test_what_will_not_do_stops_the_start(
    keys: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "SHORT").write_text("short")
    (tmp_path / "LONG").write_text(OURS)
    with pytest.raises(ConfigError, match=said) as refused, LocalClient(config(keys)):
        pass
    assert OURS not in str(refused.value)


# --- through a deployment ------------------------------------------------------------------------


def config(keys: dict[str, Any] | None) -> Config:
    model = ModelConfig(name="m", engine=PluginUse("mock"), tokenizer=PluginUse("bytes"))
    plugins = {} if keys is None else {"api_keys": {"keys": keys}}
    return Config(models=(model,), plugins=plugins, cache=CacheConfig(answers=True))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalClient]:
    monkeypatch.setenv("KEY_A", OURS)
    monkeypatch.setenv("KEY_B", THEIRS)
    with LocalClient(config({"a": ["env:KEY_A"], "b": ["env:KEY_B"]}), Host()) as made:
        yield made


def send(
    client: LocalClient, path: str, key: str, body: dict[str, Any] | None = None, method: str = ""
) -> Response:
    data = b"" if body is None else json.dumps(body).encode()
    method = method or ("GET" if body is None else "POST")
    return client.send(HttpRequest(method, path, {"authorization": f"Bearer {key}"}, body=data))


def test_it_is_off_unless_it_is_configured() -> None:
    with LocalClient(config(None)) as client:
        assert send(client, "/v1/models", "whatever").status == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_a_refusal_has_the_shape_of_its_route(client: LocalClient, path: str) -> None:
    response = send(client, path, "wrong", {"no": "call"})
    body: Any = response.json()
    assert response.status == 401
    assert body["error"]["type"] == "authentication_error"
    assert (body.get("type") == "error") == (path == "/v1/messages")


def test_stored_responses_are_their_tenants_own(client: LocalClient) -> None:
    asked = {"model": "m", "input": "hi", "max_output_tokens": 8}
    made: Any = send(client, "/v1/responses", OURS, asked).json()
    path = f"/v1/responses/{made['id']}"
    assert send(client, path, OURS).status == 200
    for at, method in [(path, "GET"), (f"{path}/input_items", "GET"), (path, "DELETE")]:
        assert send(client, at, THEIRS, method=method).status == 404
    follow = {**asked, "previous_response_id": made["id"]}
    refused: Any = send(client, "/v1/responses", THEIRS, follow)
    assert (refused.status, refused.json()["error"]["code"]) == (
        400,
        "previous_response_not_found",
    )
    assert send(client, "/v1/responses", OURS, follow).status == 200


def test_conversations_are_their_tenants_own(client: LocalClient) -> None:
    talk: Any = send(client, "/v1/conversations", OURS, {}).json()
    path = f"/v1/conversations/{talk['id']}"
    assert send(client, path, OURS).status == 200
    assert send(client, path, THEIRS).status == 404


CHAT = "/v1/chat/completions"
FIRST = [{"role": "user", "content": "Hello?"}]
HELLO: dict[str, Any] = {"model": "m", "messages": FIRST, "max_tokens": 300}


def test_kept_answers_are_their_tenants_own(client: LocalClient) -> None:
    asked = HELLO | {"temperature": 0}
    assert send(client, CHAT, OURS, asked).status == 200
    assert send(client, CHAT, OURS, asked).headers["x-tokenwire-cache"] == "hit"
    assert "x-tokenwire-cache" not in send(client, CHAT, THEIRS, asked).headers


def test_histories_are_their_tenants_own(client: LocalClient) -> None:
    answered: Any = send(client, CHAT, OURS, HELLO).json()
    said = {"role": "assistant", "content": answered["choices"][0]["message"]["content"]}
    again = {**HELLO, "messages": [*FIRST, said, {"role": "user", "content": "And?"}]}
    assert "x-tokenwire-history" not in send(client, CHAT, THEIRS, again).headers
    assert "turns[1]" in send(client, CHAT, OURS, again).headers["x-tokenwire-history"]
