"""Cached answers: the same bytes again, only for deterministic calls, never a broken one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.flow import spy
from tests.flow.spy import SPIES, SpyEngine
from tokenwire.core.config import CacheConfig, Config, ModelConfig, PluginUse
from tokenwire.core.host import Host
from tokenwire.core.testing.client import LocalClient, Recording, Response
from tokenwire.core.wire import HttpRequest

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0}


@pytest.fixture
def served() -> Iterator[tuple[LocalClient, SpyEngine]]:
    yield from serve({})


def serve(engine: dict[str, object]) -> Iterator[tuple[LocalClient, SpyEngine]]:
    SPIES.clear()
    model = ModelConfig(name="m", engine=PluginUse("spy", engine), tokenizer=PluginUse("bytes"))
    config = Config(models=(model,), cache=CacheConfig(answers=True))
    with LocalClient(config, Host({"spy": spy})) as client:
        yield client, SPIES[0]
    SPIES.clear()


def ask(client: LocalClient, **more: object) -> Response:
    return client.post("/v1/chat/completions", HELLO | more)


def said(response: Response) -> object:
    body = response.json()
    assert isinstance(body, dict)
    return [(choice["message"], choice["finish_reason"]) for choice in body["choices"]]


@pytest.mark.parametrize(
    "more",
    [{}, {"n": 2}, {"stop": "mock"}, {"logprobs": True, "top_logprobs": 1}, {"max_tokens": 3}],
)
def test_a_deterministic_call_is_answered_once(
    served: tuple[LocalClient, SpyEngine], more: dict[str, object]
) -> None:
    client, spied = served
    first, second = ask(client, **more), ask(client, **more)
    assert len(spied.jobs) == 1
    assert second.headers["x-tokenwire-cache"] == "hit"
    assert "x-tokenwire-cache" not in first.headers
    assert said(first) == said(second)
    stream = ask(client, **more, stream=True)
    assert stream.headers["x-tokenwire-cache"] == "hit"
    assert stream.body.endswith(b"data: [DONE]\n\n")
    assert len(spied.jobs) == 1


@pytest.mark.parametrize("more", [{"temperature": 0.5}, {"temperature": None}])
def test_a_call_that_may_differ_is_not(
    served: tuple[LocalClient, SpyEngine], more: dict[str, object]
) -> None:
    client, spied = served
    ask(client, **more)
    ask(client, **more)
    assert len(spied.jobs) == 2
    ask(client, **more, seed=7)
    ask(client, **more, seed=7)
    assert len(spied.jobs) == 3, "a seed that the client sent makes it deterministic"


def test_anything_that_may_change_the_answer_is_in_the_key(
    served: tuple[LocalClient, SpyEngine],
) -> None:
    client, spied = served
    for more in ({}, {"stop": "x"}, {"max_tokens": 9}, {"logprobs": True}, {"n": 2}):
        ask(client, **more)
    assert len(spied.jobs) == 5


def test_equal_calls_at_once_are_computed_once(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    request = HttpRequest("POST", "/v1/chat/completions", body=json.dumps(HELLO).encode())

    async def go() -> list[bytes]:
        exchanges = [Recording() for _ in range(8)]
        await asyncio.gather(*(client.deployment.flow.handle(request, e) for e in exchanges))
        return [b"".join(exchange.chunks) for exchange in exchanges]

    bodies = [json.loads(body)["choices"] for body in client.run(go())]
    assert all(body == bodies[0] for body in bodies)
    assert len(spied.jobs) == 1


def test_a_failed_answer_is_never_kept() -> None:
    for client, spied in serve({"error_at": 5}):
        for stream in (True, False, True):
            response = ask(client, stream=stream)
            assert "x-tokenwire-cache" not in response.headers
        assert len(spied.jobs) == 3


def test_an_answer_that_nobody_waited_for_is_not_kept(
    served: tuple[LocalClient, SpyEngine],
) -> None:
    client, spied = served
    body = json.dumps(HELLO | {"stream": True}).encode()
    request = HttpRequest("POST", "/v1/chat/completions", body=body)

    async def go() -> None:
        exchange = Recording()
        task = asyncio.ensure_future(client.deployment.flow.handle(request, exchange))
        while not exchange.chunks:
            await asyncio.sleep(0)
        exchange.leave()
        await task

    client.run(go())
    assert b"".join(ask(client).chunks).endswith(b"}")
    assert len(spied.jobs) == 2
