"""Observers are told of each call once that it started and once that it ended, with true numbers;
what they do changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.flow.wired import Doorman, Told, ask, model, request, serving, until
from tokenwire.core.config import CacheConfig, ServerConfig
from tokenwire.core.deployment import Deployment
from tokenwire.core.host import Host
from tokenwire.core.ports.observer import ITL_BOUNDS
from tokenwire.core.testing.client import MOCK, Recording

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", ["chat_completions", "messages"])
def test_a_good_call_is_told_once_with_true_numbers(protocol: str, stream: bool) -> None:
    told = Told()
    with serving(
        model(settings={"answer": "12345", "ttft_ms": 30.0, "token_ms": 3.0}),
        observers=[told],
        guards=[Doorman("a")],
    ) as (client, (spied,)):
        response = ask(client, protocol, stream=stream)
        assert response.status == 200
        job = spied.jobs[0]
    started, ended = told.tale
    assert started.request_id == response.headers["x-request-id"]
    assert (started.protocol, started.model, started.tenant) == (protocol, "m", "a")
    assert started.stream is stream
    assert started.prompt_tokens == len(job.prompt)
    assert (ended.protocol, ended.model, ended.tenant) == (protocol, "m", "a")
    assert (ended.outcome, ended.status, ended.cached_answer) == ("ok", 200, False)
    assert ended.usage is not None
    assert ended.usage.prompt_tokens == len(job.prompt)
    assert ended.usage.completion_tokens == len("12345")
    assert ended.computed_tokens == len(job.prompt) - ended.usage.cached_tokens
    assert ended.ttft_s is not None
    assert 0.025 < ended.ttft_s < ended.duration_s
    assert len(ended.itl_counts) == len(ITL_BOUNDS) + 1
    assert sum(ended.itl_counts) == len("12345") - 1
    assert 0.01 < ended.itl_sum_s < ended.duration_s


def test_cached_prompt_tokens_are_not_computed_ones() -> None:
    told = Told()
    long: list[Any] = [{"role": "user", "content": "x" * 400}]
    with serving(observers=[told]) as (client, _):
        ask(client, messages=long)
        ask(client, messages=long)
    first, second = told.ended
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.cached_tokens, first.computed_tokens) == (0, first.usage.prompt_tokens)
    assert second.usage.cached_tokens > 0
    assert second.computed_tokens == second.usage.prompt_tokens - second.usage.cached_tokens


def test_an_answer_from_the_cache_is_told_as_one() -> None:
    told = Told()
    with serving(observers=[told], cache=CacheConfig(answers=True)) as (client, _):
        ask(client, temperature=0)
        ask(client, temperature=0, stream=True)
    assert [ended.cached_answer for ended in told.ended] == [False, True]
    assert [ended.outcome for ended in told.ended] == ["ok", "ok"]
    first, second = told.ended
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.completion_tokens == first.usage.completion_tokens > 0
    assert second.usage.prompt_tokens == first.usage.prompt_tokens == first.computed_tokens
    assert second.computed_tokens == 0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("at", "cause", "outcome", "statuses"),
    [
        (0, "overloaded", "overloaded", (529, 529)),
        (3, "internal", "internal", (200, 500)),
    ],
)
def test_a_failure_is_told_by_its_word(
    at: int, cause: str, outcome: str, statuses: tuple[int, int], stream: bool
) -> None:
    told = Told()
    broken = model(settings={"error_at": at, "error_cause": cause})
    with serving(broken, observers=[told]) as (client, _):
        ask(client, stream=stream)
    _, ended = told.tale
    assert (ended.outcome, ended.status) == (outcome, statuses[not stream])
    assert ended.usage is not None
    assert ended.usage.completion_tokens == at
    assert (ended.ttft_s is None) == (at == 0)


def test_a_deadline_of_ours_is_told_as_a_timeout() -> None:
    told = Told()
    with serving(
        model(settings={"stall_at": 2}),
        observers=[told],
        server=ServerConfig(request_timeout=0.05),
    ) as (client, _):
        ask(client)
    _, ended = told.tale
    assert (ended.outcome, ended.status) == ("timeout", 504)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_left_is_told_as_cancelled_with_what_was_made(stream: bool) -> None:
    told = Told()
    with serving(model(settings={"token_ms": 2.0}), observers=[told]) as (client, (spied,)):

        async def go() -> None:
            exchange = Recording()
            asked = client.deployment.flow.handle(request(HELLO | {"stream": stream}), exchange)
            task = asyncio.ensure_future(asked)
            await until(lambda: spied.steps >= 3)
            assert not told.ended
            exchange.leave()
            await task

        client.run(go())
    _, ended = told.tale
    assert ended.outcome == "cancelled"
    assert ended.status == 499
    assert ended.usage is not None
    assert ended.usage.completion_tokens >= 3


def test_a_handler_that_is_cancelled_is_told_too() -> None:
    told = Told()
    with serving(model(settings={"token_ms": 2.0}), observers=[told]) as (client, (spied,)):

        async def go() -> None:
            flow = client.deployment.flow
            task = asyncio.ensure_future(flow.handle(request(HELLO), Recording()))
            await until(lambda: spied.steps >= 3)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        client.run(go())
    _, ended = told.tale
    assert (ended.outcome, ended.status) == ("cancelled", 499)


@pytest.mark.parametrize(
    "body", [{"model": "nope"}, {"messages": []}, {"temperature": 9}, {"top_logprobs": 3}]
)
def test_what_never_became_a_call_is_not_told(body: dict[str, Any]) -> None:
    told = Told()
    with serving(observers=[told]) as (client, _):
        assert ask(client, **body).status >= 400
    assert not told.started
    assert not told.ended


@pytest.mark.parametrize("stream", [True, False])
def test_an_observer_that_fails_changes_nothing(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broken, after = Told(RuntimeError("oops")), Told()
    with serving(observers=[broken, after]) as (client, _):
        response = ask(client, stream=stream)
    assert response.status == 200
    assert response.body.count(b"DONE") == stream
    for told in (broken, after):
        _, ended = told.tale
        assert ended.outcome == "ok"
    assert "oops" in caplog.text


def test_the_user_and_the_session_of_the_call_are_told() -> None:
    told = Told()
    with serving(observers=[told]) as (client, _):
        ask(client, user="u", session_id="s")
        ask(client, "messages", metadata={"user_id": "v"})
        ask(client)
    users = [(started.user, started.session) for started in told.started]
    assert users == [("u", "s"), ("v", None), (None, None)]


def test_who_starts_a_deployment_may_bring_observers() -> None:
    told = Told()

    async def go() -> None:
        deployment = await Deployment.start(MOCK, Host(), observers=[told])
        await deployment.loaded()
        asked = request(HELLO | {"model": "mock"})
        await deployment.flow.handle(asked, Recording())
        await deployment.drain(1.0)

    asyncio.run(go())
    assert told.tale[1].outcome == "ok"
