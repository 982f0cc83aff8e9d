"""One ending for every call, also when a reply cannot be written, or the engine dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence

import pytest

import tests.flow.test_endings as this
from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.host import Host
from tokenwire.core.ports.engine import Engine
from tokenwire.core.testing.client import LocalClient, Response
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Control,
    Counts,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)

EOS = Finish(FinishKind.STOP, FinishCause.EOS)
PATHS = {"/v1/chat/completions": {}, "/v1/messages": {"max_tokens": 9}}


class Dying(Engine):
    """Ends choice 0 of each job and then, in the next step, fails in the way that it is told."""

    how = "crash"

    def __init__(self) -> None:
        self._jobs: asyncio.Queue[TokenJob] = asyncio.Queue()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        for job in jobs:
            self._jobs.put_nowait(job)

    def control(self, frames: Sequence[Control]) -> None:
        pass

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        job = await self._jobs.get()
        counts = Counts(prompt=len(job.prompt))
        text = TokenIds((104, 105))
        yield (TokenDelta(job.job, ids=text, counts=counts),)
        yield (TokenDelta(job.job, at=2, counts=counts, finish=EOS),)
        if self.how == "crash":
            raise RuntimeError("the device is gone")
        yield (TokenDelta(job.job, choice=job.n - 1, ids=TokenIds((99999,)), counts=counts),)
        await asyncio.sleep(3600)

    def status(self) -> EngineStatus:
        return EngineStatus(
            EngineCard("m", vocab_size=300, context_length=999, capabilities=("n",))
        )

    async def drain(self, timeout_s: float) -> None:
        pass


@impl
def register_engines() -> Iterable[Factory[Engine]]:
    return [Factory("dying", NoSettings, lambda settings, services: Dying())]


def ask(how: str, path: str, **more: object) -> Response:
    Dying.how = how
    model = ModelConfig(
        name="m",
        engine=PluginUse("dying"),
        tokenizer=PluginUse("bytes"),
        trust_tokenizer=True,
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **PATHS[path], **more}
    with LocalClient(Config(models=(model,)), Host({"dying": this})) as client:
        return client.post(path, body)


@pytest.mark.parametrize("how", ["crash", "an id that is none"])
def test_a_call_ends_though_one_of_its_choices_had_ended_well(how: str) -> None:
    status = 503 if how == "crash" else 500
    assert ask(how, "/v1/chat/completions", n=2).status == status
    stream = ask(how, "/v1/chat/completions", n=2, stream=True)
    last = stream.events()[-1]
    assert "error" in json.loads(last.data)


@pytest.mark.parametrize("path", PATHS)
def test_a_reply_that_breaks_on_its_last_event_is_a_500(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an empty 200."""
    from tokenwire.plugins.protocols.chat_completions import encode
    from tokenwire.plugins.protocols.messages import unary

    for kind in (encode.UnaryReply, unary.UnaryReply):
        whole = kind.push

        def push(self: object, event: object, whole: object = whole) -> bytes:
            data: bytes = whole(self, event)  # type: ignore[operator]
            if data:
                raise ValueError("it cannot be encoded")
            return data

        monkeypatch.setattr(kind, "push", push)
    config = Config(models=(ModelConfig("m", PluginUse("mock"), tokenizer=PluginUse("bytes")),))
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **PATHS[path]}
    with LocalClient(config) as client:
        response = client.post(path, body)
    assert response.status == 500
    assert b"error" in response.body


def test_ids_that_are_none_of_the_models_are_named() -> None:
    model = ModelConfig("m", PluginUse("mock"), tokenizer=PluginUse("bytes"))
    hello = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with LocalClient(Config(models=(model,))) as client:
        for field, value in (
            ("allowed_token_ids", [1, 99999999]),
            ("logit_bias", {"99999999": 1}),
            ("stop_token_ids", [99999999]),
        ):
            response = client.post("/v1/chat/completions", hello | {field: value})
            assert response.status == 400
            error = response.json()["error"]  # type: ignore[index]
            assert error["param"] == field
            assert "99999999" in error["message"]
