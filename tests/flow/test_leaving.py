"""Clients that leave before their answer begins, and engines that die: nothing is made for nobody,
and who still waits is told in words."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.test_wiring import Tagged
from tests.flow.wired import HELLO, Told, ask, factory, model, request, serving, until
from tokenwire.core.config import CacheConfig, PluginUse
from tokenwire.core.factory import Services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.served import INLINE_CHARACTERS
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.tokens import Abort, Control, EngineCard, EngineStatus, TokenDelta, TokenJob

LONG = [{"role": "user", "content": "x" * INLINE_CHARACTERS}]
ROOMY = {"context_length": 50_000}


def start(client: LocalClient, **more: Any) -> tuple[Recording, asyncio.Future[None]]:
    """A call under way; to be used in the client's loop."""
    exchange = Recording()
    handled = client.deployment.flow.handle(request(HELLO | more), exchange)
    return exchange, asyncio.ensure_future(handled)


def unwanted(spied: SpyEngine) -> list[str]:
    """Jobs that the engine was given and not told to stop."""
    aborted = {frame.job for _, frame in spied.controls if isinstance(frame, Abort)}
    return [job.job for job in spied.jobs if job.job not in aborted]


@pytest.mark.parametrize("stream", [True, False])
def test_who_leaves_while_the_prompt_is_encoded_costs_the_engine_nothing(stream: bool) -> None:
    gate = threading.Event()
    tokenizer = Tagged(before=lambda: gate.wait(10) and None)
    told = Told()
    with serving(
        model(tokenizer=PluginUse("tagged"), settings=ROOMY),
        plugins=[factory("tagged", tokenizer)],
        kind="tokenizers",
        observers=[told],
    ) as (client, (spied,)):

        async def go() -> int:
            exchange, task = start(client, messages=LONG, stream=stream)
            await until(lambda: tokenizer.threads)
            exchange.leave()
            await asyncio.sleep(0.01)
            gate.set()
            await task
            await asyncio.sleep(0.01)
            return spied.status().running

        assert client.run(go()) == 0
        assert not unwanted(spied)
        assert spied.steps <= 1
    assert len(told.started) == len(told.ended) <= 1


@pytest.mark.parametrize("cancelled", [True, False])
def test_who_leaves_a_flight_is_never_asked_for(cancelled: bool) -> None:
    slow = model(settings={"token_ms": 2.0})
    with serving(slow, cache=CacheConfig(answers=True)) as (client, (spied,)):

        async def go() -> Recording:
            first, leading = start(client, temperature=0)
            await until(lambda: spied.steps > 2)
            second, following = start(client, temperature=0)
            await asyncio.sleep(0.01)
            if cancelled:
                following.cancel()
            else:
                second.leave()
            await asyncio.gather(leading, following, return_exceptions=True)
            assert second.status == 0
            return first

        assert client.run(go()).status == 200
        assert len(spied.jobs) == 1


def test_who_follows_a_leader_that_left_leads_unless_it_left_too() -> None:
    slow = model(settings={"token_ms": 2.0})
    with serving(slow, cache=CacheConfig(answers=True)) as (client, (spied,)):

        async def go() -> list[int]:
            first, leading = start(client, temperature=0)
            await until(lambda: spied.steps > 2)
            gone, following = start(client, temperature=0)
            await asyncio.sleep(0.01)
            staying, last = start(client, temperature=0)
            await asyncio.sleep(0.01)
            gone.leave()
            first.leave()
            await asyncio.gather(leading, following, last)
            return [exchange.status for exchange in (first, gone, staying)]

        assert client.run(go()) == [0, 0, 200]
        assert len(unwanted(spied)) == 1


# --- engines that die ----------------------------------------------------------------------------


class Dying(Engine):
    """Takes jobs, and breaks its promise when told to."""

    def __init__(self, services: Services) -> None:
        assert services.tokenizer is not None
        known = services.tokenizer.vocabulary
        self.card = EngineCard("dying", known.size, 1000, fingerprints=known.fingerprints)
        self.end = asyncio.Event()
        self.jobs: list[TokenJob] = []
        self.failure: Exception | None = ZeroDivisionError("secret insides")

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self.jobs += jobs

    def control(self, frames: Sequence[Control]) -> None: ...

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        await self.end.wait()
        if self.failure is not None:
            raise self.failure
        return
        yield ()

    def status(self) -> EngineStatus:
        return EngineStatus(self.card)

    async def drain(self, timeout_s: float) -> None:
        self.failure = None
        self.end.set()


@pytest.mark.parametrize("failure", [ZeroDivisionError("secret insides"), None])
@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_dies_fails_its_calls_in_words(
    failure: Exception | None, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[Dying] = []

    def build(settings: Any, services: Services) -> Dying:
        made.append(Dying(services))
        return made[0]

    told = Told()
    with serving(model(engine="dying"), plugins=[factory("dying", build)], observers=[told]) as (
        client,
        _,
    ):
        (engine,) = made
        engine.failure = failure

        async def go() -> tuple[list[Recording], tuple[bool, str], tuple[bool, str]]:
            before = client.deployment.ready()
            calls = [start(client, stream=stream, n=n) for n in (1, 2)]
            await until(lambda: len(engine.jobs) == 3)
            engine.end.set()
            async with asyncio.timeout(20):  # Why: a call that is never told waits for ever.
                await asyncio.gather(*(task for _, task in calls))
                late, task = start(client, stream=stream)
                await task
            return [*(each for each, _ in calls), late], before, client.deployment.ready()

        exchanges, before, after = client.run(go())
        assert before == (True, "")
        for exchange in exchanges:
            assert exchange.status == 503
            assert exchange.headers["retry-after"]
            body = b"".join(exchange.chunks)
            assert b"engine was lost; try again" in body
            assert b"secret" not in body
        assert not after[0]
        assert after[1].startswith("m: the engine")
        assert len(engine.jobs) == 3, "who comes late is not sent to it"
    assert ("secret insides" in caplog.text) == (failure is not None)
    assert [ended.outcome for ended in told.ended] == ["unavailable"] * 3


def test_what_the_engine_says_of_a_failure_is_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(model(settings={"error_at": 2, "error_cause": "internal"})) as (client, _):
        response = ask(client)
        assert response.status == 500
        line = next(each for each in caplog.messages if "engine said" in each)
        assert response.headers["x-request-id"] in line
        assert "error(internal)" in line


def test_a_reply_that_breaks_breaks_one_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokenwire.plugins.protocols.chat_completions.codec import ChatCompletions

    whole = ChatCompletions.reply

    def reply(self: Any, call: Any, stamp: Any) -> Any:
        if call.output.stream:
            raise ZeroDivisionError("a bug in a codec")
        return whole(self, call, stamp)

    monkeypatch.setattr(ChatCompletions, "reply", reply)
    with serving() as (client, (spied,)):
        assert ask(client, stream=True).status == 500
        assert ask(client).status == 200
        assert not unwanted(spied)[1:]
