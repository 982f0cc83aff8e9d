"""The gateway and its engine: aborts, credit, n, seeds, failures, and what the engine is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.flow import spy
from tests.flow.spy import SPIES, SpyEngine
from tokenwire.core import seeds
from tokenwire.core.config import Config, ModelConfig, PluginUse, ServerConfig
from tokenwire.core.deployment import Deployment
from tokenwire.core.host import Host
from tokenwire.core.stream import CREDIT_WINDOW
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.tokens import Abort, AbortReason, Credit
from tokenwire.core.wire import HttpRequest

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def config(server: ServerConfig | None = None, **engine: object) -> Config:
    model = ModelConfig(name="m", engine=PluginUse("spy", engine), tokenizer=PluginUse("bytes"))
    return Config(server=server or ServerConfig(), models=(model,))


@contextmanager
def serving(
    server: ServerConfig | None = None, **engine: object
) -> Iterator[tuple[LocalClient, SpyEngine]]:
    SPIES.clear()
    with LocalClient(config(server, **engine), Host({"spy": spy})) as client:
        yield client, SPIES[0]
    SPIES.clear()


def request(**more: object) -> HttpRequest:
    return HttpRequest("POST", "/v1/chat/completions", body=json.dumps(HELLO | more).encode())


@contextmanager
def deployed(
    **engine: object,
) -> Iterator[tuple[Callable[[Coroutine[Any, Any, Any]], Any], Deployment, SpyEngine]]:
    """Like `serving`, for tests that need the loop."""
    with serving(**engine) as (client, spied):
        yield client.run, client.deployment, spied


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_aborts_the_job_within_one_step(stream: bool) -> None:
    with deployed(token_ms=2.0) as (run, deployment, spied):

        async def go() -> tuple[int, int]:
            exchange = Recording()
            task = asyncio.ensure_future(deployment.flow.handle(request(stream=stream), exchange))
            while spied.steps < 3:
                await asyncio.sleep(0.001)
            left_at = spied.steps
            exchange.leave()
            await task
            for _ in range(200):
                if not spied.status().running:
                    break
                await asyncio.sleep(0.001)
            return left_at, spied.status().running

        left_at, running = run(go())
        (told_at, frame) = spied.controls[-1]
        assert frame == Abort(spied.jobs[0].job, None, AbortReason.CLIENT)
        assert told_at - left_at <= 1
        assert running == 0


def test_an_abandoned_handler_aborts_too() -> None:
    """The server itself may cancel a handler (a timeout, a shutdown)."""
    with deployed(token_ms=2.0) as (run, deployment, spied):

        async def go() -> None:
            task = asyncio.ensure_future(deployment.flow.handle(request(stream=True), Recording()))
            while spied.steps < 3:
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        run(go())
        assert [frame for _, frame in spied.controls] == [
            Abort(spied.jobs[0].job, None, AbortReason.CLIENT)
        ]


def test_a_stop_string_aborts_its_choice_alone() -> None:
    with serving(answer="one STOP two three four") as (client, spied):
        response = client.post("/v1/chat/completions", HELLO | {"n": 2, "stop": " STOP"})
        body = response.json()
        job = spied.jobs[0].job
        assert [choice["message"]["content"] for choice in body["choices"]] == ["one", "one"]
        assert {frame for _, frame in spied.controls} == {
            Abort(job, 0, AbortReason.STOP_TEXT),
            Abort(job, 1, AbortReason.STOP_TEXT),
        }
        assert body["usage"]["completion_tokens"] == 2 * len("one STOP")


def test_choices_of_an_engine_without_n_are_seeded_as_the_law_says() -> None:
    with serving(without=["n"]) as (client, spied):
        body = client.post("/v1/chat/completions", HELLO | {"n": 3, "seed": 42}).json()
        assert [job.n for job in spied.jobs] == [1, 1, 1]
        assert [job.sampling.seed for job in spied.jobs] == [seeds.mix(42, k) for k in range(3)]
        assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
        assert all(choice["message"]["content"] for choice in body["choices"])


def test_the_gateway_always_fills_a_seed() -> None:
    with serving() as (client, spied):
        for _ in range(2):
            client.post("/v1/chat/completions", HELLO)
        first, second = (job.sampling.seed for job in spied.jobs)
        assert first != second
        client.post("/v1/chat/completions", HELLO | {"seed": 0})
        assert spied.jobs[-1].sampling.seed == 0


def test_a_slow_client_is_bounded_by_credit_and_loses_nothing() -> None:
    total = 4 * CREDIT_WINDOW
    with deployed(answer="x" * total, credit_cap=16, context_length=2 * total) as parts:
        run, deployment, spied = parts

        class Slow(Recording):
            gate = asyncio.Event()

            async def send(self, data: bytes) -> None:
                await self.gate.wait()
                await super().send(data)

        async def go() -> tuple[int, bytes]:
            exchange = Slow()
            task = asyncio.ensure_future(deployment.flow.handle(request(stream=True), exchange))
            steps = -1
            while steps != spied.steps:
                steps = spied.steps
                await asyncio.sleep(0.05)
            Slow.gate.set()
            await task
            return steps, b"".join(exchange.chunks)

        steps, body = run(go())
        assert steps <= CREDIT_WINDOW + 16 + 8
        assert body.count(b'"content":"x') == total
        assert any(isinstance(frame, Credit) for _, frame in spied.controls)


def test_credit_of_an_engine_without_n_is_counted_by_choice() -> None:
    total = 2 * CREDIT_WINDOW
    settings = {"answer": "x" * total, "credit_cap": 16, "context_length": 2 * total}
    with serving(**settings, without=["n"]) as (client, spied):
        response = client.post("/v1/chat/completions", HELLO | {"n": 4, "stream": True})
        assert response.body.count(b'"content":"x') == 4 * total
        assert [job.credit for job in spied.jobs] == [CREDIT_WINDOW // 4] * 4
        given: dict[str, int] = {}
        for _, frame in spied.controls:
            assert isinstance(frame, Credit)
            given[frame.job] = given.get(frame.job, 0) + frame.tokens
        assert set(given) == {job.job for job in spied.jobs}
        assert all(tokens <= total for tokens in given.values())


@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_fails_before_it_speaks_gives_a_status(stream: bool) -> None:
    with serving(error_at=0, error_cause="overloaded") as (client, _):
        response = client.post("/v1/messages", HELLO | {"max_tokens": 9, "stream": stream})
        assert response.status == 529
        assert response.json()["error"]["type"] == "overloaded_error"
        assert response.headers["retry-after"]


def test_an_engine_that_fails_later_ends_the_stream_with_an_error_event() -> None:
    with serving(error_at=4) as (client, _):
        response = client.post("/v1/messages", HELLO | {"max_tokens": 99, "stream": True})
        names = [event.event for event in response.events()]
        assert response.status == 200
        assert names[-1] == "error"
        assert "message_stop" not in names
        assert client.post("/v1/messages", HELLO | {"max_tokens": 99}).status == 500


def test_a_lost_engine_fails_calls_in_words() -> None:
    with serving(disconnect_at=3, disconnect_ms=60_000) as (client, _):
        response = client.post("/v1/chat/completions", HELLO)
        assert response.status == 503
        assert "lost" in response.json()["error"]["message"]

        async def look() -> tuple[bool, str]:
            return client.deployment.ready()

        ready, why = client.run(look())
        assert not ready
        assert "m: " in why


def test_a_long_unary_call_is_told_to_stream() -> None:
    with serving(ServerConfig(request_timeout=0.05), stall_at=2) as (client, spied):
        response = client.post("/v1/chat/completions", HELLO)
        assert response.status == 504
        assert "stream" in response.json()["error"]["message"]
        assert spied.controls[-1][1] == Abort(spied.jobs[0].job, None, AbortReason.DEADLINE)


def test_a_silent_stream_is_kept_open() -> None:
    with serving(ServerConfig(keepalive=0.02), ttft_ms=120.0) as (client, _):
        response = client.post("/v1/chat/completions", HELLO | {"stream": True})
        assert response.body.startswith(b":")
        assert response.body.endswith(b"data: [DONE]\n\n")


def test_a_prompt_that_does_not_fit_is_refused_and_a_long_wish_is_clamped() -> None:
    with serving(context_length=64) as (client, spied):
        long = {"model": "m", "messages": [{"role": "user", "content": "x" * 100}]}
        response = client.post("/v1/chat/completions", long)
        assert response.status == 400
        assert response.json()["error"]["code"] == "context_length_exceeded"
        assert client.post("/v1/messages", HELLO | {"max_tokens": 10**6}).status == 200
        job = spied.jobs[-1]
        assert job.stopping.max_tokens == 64 - len(job.prompt)
