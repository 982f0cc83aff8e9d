"""Embedding calls through the gateway on the mock: who may be asked what, order, cutting, ends."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import Told, factory, model, serving, until
from tokenwire.core.config import ParseConfig, ServerConfig
from tokenwire.core.embedding import AT_ONCE, shortened
from tokenwire.core.events import Usage
from tokenwire.core.ports.engine import Engine
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.tokens import (
    Abort,
    AbortReason,
    Control,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)
from tokenwire.core.wire import HttpRequest

PATH = "/v1/embeddings"
Served: TypeAlias = tuple[LocalClient, list[SpyEngine]]
EMBEDS = {"tasks": ["embed"], "embedding_size": 16}


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


@pytest.fixture(scope="module")
def served(told: Told) -> Iterator[Served]:
    with serving(
        model("m"),
        model("e", settings=EMBEDS),
        model("both", settings={"tasks": ["generate", "embed"]}),
        model("strict", settings=EMBEDS, parse=ParseConfig(unknown_fields="refuse")),
        model("narrow", settings={**EMBEDS, "context_length": 8}),
        observers=[told],
    ) as found:
        yield found


def ask(client: LocalClient, path: str = PATH, **body: Any) -> Any:
    body = {"model": "e", **body}
    response = client.send(HttpRequest("POST", path, body=json.dumps(body).encode()))
    return response.status, json.loads(response.body)


def vectors(client: LocalClient, **body: Any) -> list[list[float]]:
    status, answer = ask(client, **body)
    assert status == 200, answer
    assert [each["index"] for each in answer["data"]] == list(range(len(answer["data"])))
    return [each["embedding"] for each in answer["data"]]


def test_equal_inputs_have_equal_vectors_of_length_one(served: Served) -> None:
    client, _ = served
    one, two, three = vectors(client, input=["ab", "cd", "ab"])
    assert one == three != two
    assert len(one) == 16
    assert math.hypot(*one) == pytest.approx(1, abs=1e-12)
    assert vectors(client, input=[list(b"ab")]) == [one]


def test_texts_that_share_ids_are_closer(served: Served) -> None:
    client, _ = served
    one, near, far = vectors(client, input=["a calm sea", "a calm seat", "QUITE OTHER"])
    assert sum(map(float.__mul__, one, near)) > 0.8 > sum(map(float.__mul__, one, far))


def test_as_many_inputs_as_the_protocol_allows(served: Served) -> None:
    client, spies = served
    found = vectors(client, input=[f"n{k % 7}" for k in range(2048)])
    assert found[:7] * 292 == found[: 7 * 292]
    assert len({tuple(each) for each in found}) == 7
    waves = {job.job.partition(".")[2].partition(".")[0] for job in spies[1].jobs[-2048:]}
    assert len(waves) == 2048 // AT_ONCE


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/messages", {"max_tokens": 3, "messages": [{"role": "user", "content": "a"}]}),
        ("/v1/responses", {"input": "a"}),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/generate", {"prompt": [1]}),
    ],
)
def test_a_model_that_embeds_alone_makes_no_text(
    served: Served, path: str, body: dict[str, Any]
) -> None:
    client, _ = served
    status, answer = ask(client, path, **body)
    assert status == 400
    assert "model 'e' makes vectors, and no text" in answer["error"]["message"]
    assert ask(client, path, **{**body, "model": "both"})[0] == 200


def test_a_model_that_generates_alone_makes_no_vectors(served: Served) -> None:
    client, _ = served
    status, answer = ask(client, model="m", input="a")
    assert (status, answer["error"]["code"]) == (400, "unsupported_task")
    assert answer["error"]["param"] == "model"
    assert ask(client, model="both", input="a")[0] == 200
    assert ask(client, model="none", input="a")[0] == 404


def test_capabilities_tell_of_what_a_model_does(served: Served) -> None:
    client, _ = served
    response = client.send(HttpRequest("GET", "/v1/capabilities"))
    listed = {each["id"]: each for each in json.loads(response.body)["data"]}
    assert "embeddings" in listed["e"]["protocols"]
    assert "chat_completions" not in listed["e"]["protocols"]
    assert "embeddings" not in listed["m"]["protocols"]
    assert {"embeddings", "chat_completions", "tokenize"} <= listed["both"]["protocols"].keys()


def test_a_long_input_is_refused_or_cut(served: Served) -> None:
    client, _ = served
    status, answer = ask(client, model="narrow", input=["a", "a" * 9])
    assert (status, answer["error"]["param"]) == (400, "input")
    assert answer["error"]["code"] == "context_length_exceeded"
    assert "number 1" in answer["error"]["message"]
    assert ask(client, model="narrow", input="a" * 8)[0] == 200
    for most, kept in ((-1, 8), (3, 3)):
        whole = vectors(client, model="narrow", input="abcdefghijk", truncate_prompt_tokens=most)
        assert whole == vectors(client, model="narrow", input="abcdefghijk"[:kept])
        ids = list(b"abcdefghijk")
        assert whole == vectors(client, model="narrow", input=ids, truncate_prompt_tokens=most)
    status, answer = ask(client, model="narrow", input="a", truncate_prompt_tokens=9)
    assert (status, answer["error"]["param"]) == (400, "truncate_prompt_tokens")


def test_ids_must_be_the_models(served: Served) -> None:
    client, _ = served
    status, answer = ask(client, input=[1, 259])
    assert (status, answer["error"]["param"]) == (400, "input")
    assert "token ids 0 to 258, got 259" in answer["error"]["message"]


def test_dimensions(served: Served) -> None:
    client, _ = served
    (whole,) = vectors(client, input="abc")
    (few,) = vectors(client, input="abc", dimensions=5)
    assert few == pytest.approx(shortened(tuple(whole), 5), abs=1e-12)
    assert math.hypot(*few) == pytest.approx(1, abs=1e-12)
    status, answer = ask(client, input="abc", dimensions=17)
    assert (status, answer["error"]["param"]) == (400, "dimensions")
    assert shortened((0.0, 0.0, 1.0), 2) == (0.0, 0.0)


def finish(kind: FinishKind, cause: FinishCause) -> Finish:
    return Finish(kind, cause, message="its own words")


class Puppet(Engine):
    """Says of the first job what it is told to, and nothing of the others."""

    def __init__(self, said: Finish | None = None) -> None:
        self.said = said
        self.jobs: list[TokenJob] = []
        self.controls: list[Control] = []
        self.out: asyncio.Queue[tuple[TokenDelta, ...]] = asyncio.Queue()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self.jobs += jobs
        if self.said is not None:
            self.out.put_nowait((TokenDelta(jobs[0].job, finish=self.said),))

    def control(self, frames: Sequence[Control]) -> None:
        self.controls += frames

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        while batch := await self.out.get():
            yield batch

    def status(self) -> EngineStatus:
        return EngineStatus(EngineCard("e", 259, 100, tasks=("embed",)))

    async def drain(self, timeout_s: float) -> None:
        self.out.put_nowait(())


def aborts(engine: Puppet) -> set[tuple[str, AbortReason]]:
    return {(each.job, each.reason) for each in engine.controls if isinstance(each, Abort)}


@contextmanager
def puppet(said: Finish | None = None, **config: Any) -> Iterator[tuple[LocalClient, Puppet, Told]]:
    engine, told = Puppet(said), Told()
    made = model("e", engine="puppet", trust_tokenizer=True)
    plugins = [factory("puppet", engine)]
    with serving(made, plugins=plugins, observers=[told], **config) as (client, _):
        yield client, engine, told


@pytest.mark.parametrize(
    ("kind", "cause", "status"),
    [
        (FinishKind.ERROR, FinishCause.OVERLOADED, 503),
        (FinishKind.ERROR, FinishCause.INTERNAL, 500),
        (FinishKind.ERROR, FinishCause.CONTEXT_LENGTH, 400),
        (FinishKind.ERROR, FinishCause.LOST, 503),
        (FinishKind.ABORT, FinishCause.DEADLINE, 504),
        (FinishKind.ABORT, FinishCause.DRAIN, 503),
        (FinishKind.STOP, FinishCause.EOS, 500),  # without the vector that it should have
    ],
)
def test_what_an_engine_cannot_do_is_told_and_the_rest_is_ended(
    kind: FinishKind, cause: FinishCause, status: int
) -> None:
    with puppet(finish(kind, cause)) as (client, engine, told):
        got, answer = ask(client, input=["a", "b", "c"])
        assert got == status
        assert "its own words" not in answer["error"]["message"]
        assert aborts(engine) == {(job.job, AbortReason.CLIENT) for job in engine.jobs[1:]}
        assert told.tale[1].outcome != "ok"


def test_who_leaves_ends_the_jobs() -> None:
    with puppet() as (client, engine, told):

        async def go() -> None:
            exchange = Recording()
            body = json.dumps({"input": ["a", "b"]}).encode()
            handled = client.deployment.flow.handle(HttpRequest("POST", PATH, body=body), exchange)
            task = asyncio.ensure_future(handled)
            await until(lambda: len(engine.jobs) == 2)
            exchange.leave()
            await task
            assert exchange.status == 0

        client.run(go())
        assert aborts(engine) == {(job.job, AbortReason.CLIENT) for job in engine.jobs}
        assert told.tale[1].outcome == "cancelled"


def test_an_answer_that_takes_too_long_ends_its_jobs() -> None:
    with puppet(server=ServerConfig(request_timeout=0.05)) as (client, engine, told):
        status, answer = ask(client, input="a")
        assert status == 504
        assert "0.05 s" in answer["error"]["message"]
        assert aborts(engine) == {(engine.jobs[0].job, AbortReason.DEADLINE)}
        assert told.tale[1].status == 504


def test_unknown_fields_are_listed_or_refused(served: Served) -> None:
    client, _ = served
    body = {"model": "e", "input": "a", "fancy": 1}
    data = json.dumps(body).encode()
    response = client.send(HttpRequest("POST", PATH, query="x=1", body=data))
    assert response.status == 200
    assert response.headers["x-tokenwire-ignored"] == "fancy, ?x"
    status, answer = ask(client, model="strict", input="a", fancy=1)
    assert (status, answer["error"]["param"]) == (400, "fancy")


def test_observers_are_told(served: Served, told: Told) -> None:
    client, _ = served
    before = len(told.ended)
    ask(client, input=["ab", "c"], user="u")
    ask(client, input="a" * 9, model="narrow")
    assert len(told.ended) == before + 1, "what is refused before it is asked is no call"
    started, ended = told.started[-1], told.ended[-1]
    assert (started.protocol, started.model, started.user) == ("embeddings", "e", "u")
    assert (ended.outcome, ended.status, ended.usage) == ("ok", 200, Usage(3, 0))
