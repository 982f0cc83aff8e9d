"""Completions on the live flow: what the engine gets of a raw prompt, and whose answer is whose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import model, serving
from tokenwire.core.config import CacheConfig, PluginUse
from tokenwire.core.testing.client import LocalClient, Recording
from tokenwire.core.tokens import Abort, AbortReason, Credit
from tokenwire.core.wire import HttpRequest

PATH = "/v1/completions"


def request(body: dict[str, Any]) -> HttpRequest:
    return HttpRequest("POST", PATH, body=json.dumps({"model": "m", **body}).encode())


def ask(client: LocalClient, **body: Any) -> Any:
    response = client.send(request(body))
    assert response.status == 200, response.body
    return response.json()


def texts(answer: Any) -> list[str]:
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(answer["choices"])))
    return [choice["text"] for choice in answer["choices"]]


@pytest.fixture
def served() -> Iterator[tuple[LocalClient, SpyEngine]]:
    with serving(model(dialect="hermes", settings={"answer": "abcdef"})) as (client, (spied,)):
        yield client, spied


def test_text_goes_to_the_engine_as_it_is(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    ask(client, prompt="<|im_start|>a<eos>潮")
    assert bytes(spied.jobs[0].prompt.tolist()).decode() == "<|im_start|>a<eos>潮"


def test_nothing_is_read_into_the_answer() -> None:
    """A dialect with calls and reasoning: here it is all text."""
    answer = '<think>\na\n</think>\n<tool_call>\n{"name": "f"}\n</tool_call>'
    with serving(model(dialect="hermes", settings={"answer": answer})) as (client, _):
        said = ask(client, prompt="a", max_tokens=500)
    assert texts(said) == [answer]
    assert said["choices"][0]["finish_reason"] == "stop"
    assert said["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_sixteen_tokens_where_nothing_is_said(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    ask(client, prompt="a")
    assert spied.jobs[0].stopping.max_tokens == 16


# --- several prompts -----------------------------------------------------------------------------


@pytest.mark.parametrize("without", [[], ["n"], ["credit"], ["n", "credit"]])
@pytest.mark.parametrize("stream", [False, True])
def test_each_prompt_has_its_own_answers(without: list[str], stream: bool) -> None:
    with serving(model(settings={"answer": "xyz", "without": without})) as (client, (spied,)):
        body = {"prompt": ["ab", "cde"], "n": 2, "echo": True, "stream": stream, "max_tokens": 9}
        if stream:
            response = client.send(request({**body, "stream_options": {"include_usage": True}}))
            *parts, done = [event.data for event in response.events()]
            assert done == "[DONE]"
            got, usage = ["", "", "", ""], None
            for part in map(json.loads, parts):
                usage = part["usage"]
                for choice in part["choices"]:
                    got[choice["index"]] += choice["text"]
        else:
            answer = ask(client, **body)
            got, usage = texts(answer), answer["usage"]
    assert got == ["abxyz", "abxyz", "cdexyz", "cdexyz"]
    assert usage is not None
    assert usage["prompt_tokens"] == 5, "each prompt once, whatever n"
    assert usage["completion_tokens"] == 12
    prompts = [bytes(job.prompt.tolist()).decode() for job in spied.jobs]
    each = 2 if "n" in without else 1
    assert prompts == ["ab"] * each + ["cde"] * each


def test_equal_prompts_get_other_seeds_unless_the_client_sent_one(
    served: tuple[LocalClient, SpyEngine],
) -> None:
    client, spied = served
    ask(client, prompt=["a", "a"])
    assert len({job.sampling.seed for job in spied.jobs}) == 2
    ask(client, prompt=["a", "a"], seed=7)
    assert [job.sampling.seed for job in spied.jobs[2:]] == [7, 7]


def test_a_stop_string_ends_its_own_choice_alone(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    answer = ask(client, prompt=["a", "b"], n=2, stop="d")
    assert texts(answer) == ["abc"] * 4
    aborts = [frame for _, frame in spied.controls if isinstance(frame, Abort)]
    assert {(frame.job.rpartition(".")[2], frame.choice) for frame in aborts} == {
        ("p0", 0),
        ("p0", 1),
        ("p1", 0),
        ("p1", 1),
    }
    assert {frame.reason for frame in aborts} == {AbortReason.STOP_TEXT}


def test_a_client_that_leaves_frees_every_prompt() -> None:
    with serving(model(settings={"token_ms": 50.0})) as (client, (spied,)):

        async def leave() -> None:
            exchange = Recording()
            flow = client.deployment.flow
            going = asyncio.ensure_future(
                flow.handle(request({"prompt": ["a", "b", "c"], "stream": True}), exchange)
            )
            while not exchange.chunks:
                await asyncio.sleep(0.001)
            exchange.leave()
            await going

        client.run(leave())
        aborted = [frame.job for _, frame in spied.controls if isinstance(frame, Abort)]
    assert aborted == [job.job for job in spied.jobs]


def test_credit_is_shared_and_given_back() -> None:
    answer = "x" * 3000
    settings = {"answer": answer, "context_length": 9000}
    with serving(model(settings=settings, context_length=9000)) as (client, (spied,)):
        response = client.send(request({"prompt": ["a", "b"], "stream": True, "max_tokens": 4000}))
        assert response.body.count(b'"text":"x') >= 2
        total = response.body.count(b"x")
        assert total >= 6000
        given: dict[str, int] = {}
        for _, frame in spied.controls:
            if isinstance(frame, Credit):
                given[frame.job] = given.get(frame.job, 0) + frame.tokens
    assert {job.credit for job in spied.jobs} == {512}
    assert set(given) == {job.job for job in spied.jobs}


def test_one_prompt_that_does_not_fit_refuses_the_call() -> None:
    with serving(model()) as (client, (spied,)):
        response = client.send(request({"prompt": ["a", "b" * 9000]}))
        body: Any = response.json()
    assert response.status == 400
    assert body["error"]["code"] == "context_length_exceeded"
    assert body["error"]["param"] == "prompt"
    assert not spied.jobs


def test_an_engine_that_fails_on_one_prompt_fails_the_call() -> None:
    with serving(model(settings={"error_at": 2})) as (client, _):
        assert client.send(request({"prompt": ["a", "b"]})).status == 500
        response = client.send(request({"prompt": ["a", "b"], "stream": True}))
        last = response.events()[-1].data
        assert "error" in json.loads(last)


# --- echo, candidates ----------------------------------------------------------------------------


def test_an_echo_has_the_prompt_s_log_probabilities(
    served: tuple[LocalClient, SpyEngine],
) -> None:
    client, spied = served
    for stream in (False, True):
        response = client.send(
            request(
                {"prompt": "a潮", "echo": True, "logprobs": 0, "max_tokens": 2, "stream": stream}
            )
        )
        if stream:
            parts = [json.loads(each.data) for each in response.events()[:-1]]
            found = [part["choices"][0] for part in parts if part["choices"]]
        else:
            body: Any = response.json()
            found = body["choices"]
        arrays = [choice["logprobs"] for choice in found if choice["logprobs"]]
        offsets = [offset for each in arrays for offset in each["text_offset"]]
        values = [value for each in arrays for value in each["token_logprobs"]]
        assert "".join(choice["text"] for choice in found) == "a潮ab"
        assert offsets == [0, 1, 1, 1, 2, 3]
        assert values[0] is None
        assert None not in values[1:]
    assert all(job.logprobs is not None and job.logprobs.prompt == 0 for job in spied.jobs)


def test_an_echo_alone_is_not_generated(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    answer = ask(client, prompt="abc", echo=True, max_tokens=0)
    assert texts(answer) == ["abc"]
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 0
    assert spied.jobs[0].stopping.max_tokens == 1


def test_an_engine_without_prompt_logprobs_says_so() -> None:
    with serving(model(settings={"without": ["prompt_logprobs"]})) as (client, _):
        response = client.send(request({"prompt": "a", "echo": True, "logprobs": 1}))
        assert response.status == 400
        assert b"leave logprobs out" in response.body
        assert texts(ask(client, prompt="a", echo=True, max_tokens=1)) == ["aT"]


def test_candidates_are_made_and_counted(served: tuple[LocalClient, SpyEngine]) -> None:
    client, spied = served
    answer = ask(client, prompt=["a", "b"], n=1, best_of=3, max_tokens=2)
    assert texts(answer) == ["ab", "ab"]
    assert answer["usage"]["completion_tokens"] == 12
    assert [job.n for job in spied.jobs] == [3, 3]
    assert [choice["logprobs"] for choice in answer["choices"]] == [None, None]


def test_the_best_candidate_is_sent() -> None:
    """Choices of one script each; the second has the likelier tokens."""
    choices = [
        {"pieces": ["one"], "logprobs": [[-3.0]]},
        {"pieces": ["two"], "logprobs": [[-0.1]]},
        {"pieces": ["six"], "logprobs": [[-2.0]]},
    ]
    with serving(model(engine="mock", tokenizer=PluginUse("script"))) as (client, _):
        client.script("best", {"choices": choices})
        body = {"model": "m", "prompt": "a", "best_of": 3, "n": 2}
        said: Any = client.post(PATH, body, {"x-mock-script": "best"}).json()
    assert texts(said) == ["two", "six"]


def test_a_deterministic_answer_comes_from_the_cache() -> None:
    with serving(model(), cache=CacheConfig(answers=True)) as (client, (spied,)):
        body = {"prompt": "a", "temperature": 0, "echo": True, "logprobs": 1}
        first, second = client.send(request(body)), client.send(request(body))
        assert second.headers["x-tokenwire-cache"] == "hit"
        one, two = (response.json() for response in (first, second))
        assert one["choices"] == two["choices"]  # type: ignore[index]
        assert len(spied.jobs) == 1
        several = {"prompt": ["a", "b"], "temperature": 0}
        assert texts(client.send(request(several)).json()) == texts(
            client.send(request(several)).json()
        )
        assert len(spied.jobs) == 5, "answers to several prompts are not kept"
