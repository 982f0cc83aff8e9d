"""A configuration made real: names, engines that do not fit or do not load."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.core import odd_engine
from tokenwire.core.config import CacheConfig, Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.deployment import Deployment
from tokenwire.core.errors import ConfigError
from tokenwire.core.host import Host
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.wire import HttpRequest

ASK = {"messages": [{"role": "user", "content": "hi"}]}


def odd(name: str = "m", trust: bool = False, **settings: Any) -> ModelConfig:
    engine = PluginUse("odd", settings)
    return ModelConfig(name, engine, PluginUse("bytes"), "plain", trust_tokenizer=trust)


def mock(name: str, **more: Any) -> ModelConfig:
    return ModelConfig(name, PluginUse("mock"), PluginUse("bytes"), "plain", **more)


def serve(*models: ModelConfig, **more: Any) -> LocalClient:
    return LocalClient(Config(models=models, **more), Host({"odd": odd_engine}))


def refusal(client: LocalClient, name: str = "m") -> str:
    """Of both protocols, which say the same."""
    chat = client.post("/v1/chat/completions", ASK | {"model": name})
    other = client.post("/v1/messages", ASK | {"model": name, "max_tokens": 9})
    assert chat.status == other.status == 503
    assert chat.headers["retry-after"]
    one: Any = chat.json()
    two: Any = other.json()
    assert one["error"]["message"] == two["error"]["message"]
    assert one["error"]["code"] == "model_not_ready"
    return str(one["error"]["message"])


def state(client: LocalClient) -> tuple[bool, str]:
    async def look() -> tuple[bool, str]:
        return client.deployment.ready()

    return client.run(look())


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "models",
    [
        (mock("a"), mock("a")),
        (mock("a", aliases=("b",)), mock("b")),
        (mock("a", aliases=("c",)), mock("b", aliases=("c",))),
    ],
)
def test_two_models_of_one_name_are_refused(models: tuple[ModelConfig, ...]) -> None:
    with (
        pytest.raises(ConfigError, match=r"two models are called '[abc]'"),
        serve(*models),
    ):
        raise AssertionError("it started")


def test_a_model_answers_to_its_aliases_and_is_listed_once() -> None:
    with serve(mock("a", aliases=("b", "c")), mock("d")) as client:
        assert client.deployment.models() == ("a", "d")
        listed: Any = client.get("/v1/models").json()
        assert [entry["id"] for entry in listed["data"]] == ["a", "d"]
        for name in ("a", "b", "c"):
            assert client.post("/v1/chat/completions", ASK | {"model": name}).status == 200
            assert client.get(f"/v1/models/{name}").status == 200
        found = client.post("/v1/chat/completions", ASK | {"model": "e"})
        assert found.status == 404
        assert b"'b'" in found.body


def test_a_configured_context_is_honoured() -> None:
    with serve(mock("a", context_length=50)) as client:
        body: Any = {"model": "a", "messages": [{"role": "user", "content": "x" * 60}]}
        refused: Any = client.post("/v1/chat/completions", body).json()
        assert "maximum context length is 50 tokens" in refused["error"]["message"]
        entry: Any = client.get("/v1/models/a").json()
        assert entry["max_model_len"] == 50


# --- engines that cannot be had ------------------------------------------------------------------


@pytest.mark.parametrize("which", ["vocabulary", "added_tokens"])
def test_an_engine_with_other_tokens_is_refused_and_told_what_differs(which: str) -> None:
    with serve(odd(fingerprints={which: "f" * 64}), mock("other")) as client:
        words = refusal(client)
        assert f"another {which}" in words
        assert "ffffffff" in words
        ready, why = state(client)
        assert not ready
        assert f"m: its engine has another {which}" in why
        assert client.post("/v1/chat/completions", ASK | {"model": "other"}).status == 200


def test_trust_does_not_cover_a_known_difference() -> None:
    with serve(odd(trust=True, fingerprints={"vocabulary": "f" * 64})) as client:
        assert "another vocabulary" in refusal(client)


def test_an_engine_that_cannot_tell_its_tokens_needs_trust() -> None:
    with serve(odd(fingerprints={})) as client:
        words = refusal(client)
        assert "no fingerprint of its vocabulary" in words
        assert "trust_tokenizer: true" in words
    with serve(odd(trust=True, fingerprints={})) as client:
        assert state(client) == (True, "")
    with serve(odd()) as client:
        assert state(client) == (True, "")


def test_an_engine_that_does_not_load_is_told_of_in_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve(odd(fails="words")) as client:
        assert refusal(client).endswith("is not ready: it wants a GPU")
    with serve(odd(fails="bug")) as client:
        assert "odd" in refusal(client)
        assert not state(client)[0]
    assert "secret insides" in caplog.text


@pytest.mark.parametrize("name", ["m", ""])
def test_an_engine_that_is_not_installed_is_told_of_in_words(name: str) -> None:
    """The short form names the engine `remote`, and leaves the model's name to it."""
    absent = ModelConfig(name, PluginUse("nowhere"), PluginUse("bytes"))
    with serve(absent) as client:
        assert "no engine plugin 'nowhere' is installed" in refusal(client, name or "anything")
        ready, why = state(client)
        assert not ready
        assert why.startswith(f"{name or 'default'}: no engine plugin")
        listed: Any = client.get("/v1/models").json()
        assert listed["data"] == []


def test_an_unready_engine_makes_the_server_unready_but_is_asked() -> None:
    with serve(odd(unready="warming up"), mock("b")) as client:
        assert state(client) == (False, "m: warming up")
        assert set(client.deployment.engine_statuses()) == {"m", "b"}


def test_until_engines_are_there_calls_are_told_so() -> None:
    async def go() -> None:
        deployment = await Deployment.start(Config(models=(mock("a"),)), Host())
        ready, why = deployment.ready()
        assert (ready, why) == (False, "a: its engine is loading")
        body = json.dumps(ASK | {"model": "a"}).encode()
        exchange = Recording()
        await deployment.flow.handle(
            HttpRequest("POST", "/v1/chat/completions", body=body), exchange
        )
        assert exchange.status == 503
        assert b"'a' is not ready: its engine is loading" in exchange.chunks[0]
        await deployment.loaded()
        assert deployment.ready() == (True, "")
        await deployment.drain(1.0)
        assert deployment.ready() == (False, "the server is shutting down")

    asyncio.run(go())


# --- scripts, debugging, settings -----------------------------------------------------------------


@pytest.mark.parametrize("engine", ["mock", "odd"])
def test_scripts_are_there_for_mock_models_alone(engine: str) -> None:
    with serve(mock("m") if engine == "mock" else odd()) as client:
        assert (client.deployment.scripts is not None) == (engine == "mock")


@pytest.mark.parametrize("debug", [True, False])
def test_prompts_are_kept_for_debugging_only(debug: bool) -> None:
    with serve(mock("a"), server=ServerConfig(debug=debug)) as client:
        response = client.post("/v1/chat/completions", ASK | {"model": "a"})
        kept = client.deployment.recent_prompt(response.headers["x-request-id"])
        assert (kept is not None) == debug
        if kept is not None:
            assert "hi" in kept.prompt.text
            assert kept.prompt.spans
            assert kept.tokenizer.encode(kept.prompt.text) == kept.prompt.ids
        assert client.deployment.recent_prompt("req_other") is None


def test_plugins_get_their_own_settings() -> None:
    config = {"chat_completions": {"reasoning_field": "nope"}}
    with pytest.raises(ConfigError, match="reasoning_field"), serve(mock("a"), plugins=config):
        raise AssertionError("it started")


def test_the_store_is_the_one_that_is_configured() -> None:
    with (
        pytest.raises(ConfigError, match="nowhere"),
        serve(mock("a"), cache=CacheConfig("nowhere")),
    ):
        raise AssertionError("it started")
