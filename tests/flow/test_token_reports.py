"""Chat Completions' fields that servers of open models share: ids beside text, log probabilities of
the prompt, a final message echoed, reasoning in the content or in one piece, prompts cut short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, model, serving
from tokenwire.core.testing.client import LocalClient

THOUGHT, ANSWER = "I weigh the tides.", "Low."
TEXT = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
USER = {"role": "user", "content": "hi"}
BEGUN = [USER, {"role": "assistant", "content": "It is"}]
CALLED = '<tool_call>\n{"name": "f", "arguments": {"a": "潮"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
PATH = PATHS["chat_completions"]

World = tuple[LocalClient, SpyEngine]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with serving(model(dialect="hermes", settings={"answer": TEXT})) as (client, (spied,)):
        yield client, spied


def ask(client: LocalClient, **fields: Any) -> dict[str, Any]:
    response = client.post(PATH, {"model": "m", "messages": [USER], **fields})
    assert response.status == 200, response.body
    body: dict[str, Any] = json.loads(response.body)
    return body


def chunks(client: LocalClient, **fields: Any) -> list[dict[str, Any]]:
    response = client.post(PATH, {"model": "m", "messages": [USER], "stream": True, **fields})
    assert response.status == 200, response.body
    lines = response.body.decode().splitlines()
    found = [line[6:] for line in lines if line.startswith("data: {")]
    return [json.loads(each) for each in found]


def joined(found: list[dict[str, Any]], field: str) -> str:
    deltas = [choice["delta"] for chunk in found for choice in chunk["choices"]]
    return "".join(delta.get(field) or "" for delta in deltas)


# --- ids -----------------------------------------------------------------------------------------


def test_ids_of_prompt_and_answer(world: World) -> None:
    client, spied = world
    body = ask(client, return_token_ids=True)
    assert body["prompt_token_ids"] == list(spied.jobs[-1].prompt)
    ids = body["choices"][0]["token_ids"]
    assert bytes(id_ for id_ in ids if id_ < 256).decode() == TEXT
    assert len(ids) == body["usage"]["completion_tokens"]
    assert "token_ids" not in ask(client)["choices"][0]


@pytest.mark.parametrize("stop", [None, "eigh"])
def test_ids_of_a_stream_add_up_to_the_answers(world: World, stop: str | None) -> None:
    client, _ = world
    fields = {"return_token_ids": True, "n": 2, "stop": stop, "messages": [USER]}
    body = ask(client, **fields)
    first, *rest = chunks(client, **fields)
    assert first["prompt_token_ids"] == body["prompt_token_ids"]
    assert not any("prompt_token_ids" in chunk for chunk in rest)
    for k, choice in enumerate(body["choices"]):
        told = [
            id_
            for chunk in rest
            for each in chunk["choices"]
            if each["index"] == k
            for id_ in each.get("token_ids", ())
        ]
        assert told == choice["token_ids"]


def test_ids_of_calls_and_hidden_thinking() -> None:
    own = model(dialect="hermes", settings={"answer": f"<think>\na\n</think>\n\n{CALLED}"})
    with serving(own) as (client, _):
        fields = {"return_token_ids": True, "tools": [TOOL], "include_reasoning": False}
        body = ask(client, **fields)
        assert body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "f"
        found = chunks(client, **fields)
    told = [
        id_ for chunk in found for each in chunk["choices"] for id_ in each.get("token_ids", ())
    ]
    assert told == body["choices"][0]["token_ids"]
    assert CALLED.encode() in bytes(id_ for id_ in told if id_ < 256)


# --- log probabilities ---------------------------------------------------------------------------


def test_log_probabilities_of_the_prompt(world: World) -> None:
    client, spied = world
    body = ask(client, prompt_logprobs=1)
    prompt = spied.jobs[-1].prompt
    none, *rest = body["prompt_logprobs"]
    assert none is None
    assert len(rest) == len(prompt) - 1
    for id_, entry in zip(prompt[1:], rest, strict=True):
        assert str(id_) in entry
        assert {type(each["logprob"]) for each in entry.values()} == {float}
        assert [each["rank"] for each in entry.values() if each["rank"]] == [1]
    assert body["choices"][0]["logprobs"] is None
    assert chunks(client, prompt_logprobs=1)[0]["prompt_logprobs"] == body["prompt_logprobs"]


def test_named_ids_are_among_the_likeliest(world: World) -> None:
    client, spied = world
    body = ask(client, logprobs=True, logprob_token_ids=[65, 66])
    assert list(spied.jobs[-1].logprobs.ids) == [65, 66]  # type: ignore[union-attr]
    for entry in body["choices"][0]["logprobs"]["content"]:
        assert {"A", "B"} <= {top["token"] for top in entry["top_logprobs"]}


# --- echo ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_final_message_is_echoed(world: World, goes_on: bool) -> None:
    client, _ = world
    fields: dict[str, Any] = {"messages": BEGUN, "continue_final_message": goes_on}
    plain = ask(client, **fields)["choices"][0]["message"]
    body = ask(client, **fields, echo=True, n=2)
    for choice in body["choices"]:
        assert choice["message"]["content"] == "It is" + plain["content"]
    assert joined(chunks(client, **fields, echo=True), "content") == "It is" + plain["content"]


def test_there_is_nothing_to_echo_behind_a_question(world: World) -> None:
    client, _ = world
    assert ask(client, echo=True)["choices"][0]["message"] == ask(client)["choices"][0]["message"]


# --- reasoning -----------------------------------------------------------------------------------


def test_reasoning_in_the_content(world: World) -> None:
    client, _ = world
    body = ask(client, separate_reasoning=False)
    message = body["choices"][0]["message"]
    assert message["content"] == f"<think>{THOUGHT}</think>{ANSWER}"
    assert "reasoning_content" not in message
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    found = chunks(client, separate_reasoning=False)
    assert joined(found, "content") == message["content"]
    assert not joined(found, "reasoning_content")


def test_a_block_that_the_answer_does_not_close_has_no_closing_marker(world: World) -> None:
    client, _ = world
    body = ask(client, separate_reasoning=False, max_tokens=16)
    assert body["choices"][0]["message"]["content"] == "<think>I weigh "


def test_a_block_that_the_prompt_opens_has_no_opening_marker() -> None:
    text = f"{THOUGHT}\n</think>\n\n{ANSWER}"
    own = model(dialect="hermes", reasoning="implicit", settings={"answer": text})
    with serving(own) as (client, _):
        body = ask(client, separate_reasoning=False)
    assert body["choices"][0]["message"]["content"] == f"{THOUGHT}</think>{ANSWER}"


def test_log_probabilities_of_reasoning_in_the_content(world: World) -> None:
    client, _ = world
    body = ask(client, separate_reasoning=False, logprobs=True)
    told = [entry["token"] for entry in body["choices"][0]["logprobs"]["content"]]
    assert "".join(told) == THOUGHT + ANSWER


def test_reasoning_in_one_piece(world: World) -> None:
    client, _ = world
    deltas = [
        chunk["choices"][0]["delta"]
        for chunk in chunks(client, stream_reasoning=False, return_token_ids=True)
    ]
    pieces = [delta["reasoning_content"] for delta in deltas if delta.get("reasoning_content")]
    assert pieces == [THOUGHT]
    plain = [delta for delta in deltas if delta.get("content")]
    assert len(plain) > 1, "what is no reasoning comes as it is made"
    cut = chunks(client, stream_reasoning=False, max_tokens=16)
    assert joined(cut, "reasoning_content") == "I weigh "


# --- the prompt ----------------------------------------------------------------------------------


def test_the_last_tokens_of_a_prompt(world: World) -> None:
    client, spied = world
    ask(client)
    whole = list(spied.jobs[-1].prompt)
    body = ask(client, truncate_prompt_tokens=7)
    assert list(spied.jobs[-1].prompt) == whole[-7:]
    assert body["usage"]["prompt_tokens"] == 7
    ask(client, truncate_prompt_tokens=10_000)
    assert list(spied.jobs[-1].prompt) == whole


def test_a_prompt_that_does_not_fit_is_cut_to_what_does(world: World) -> None:
    client, spied = world
    long = [{"role": "user", "content": "tide " * 4000}]
    response = client.post(PATH, {"model": "m", "messages": long})
    assert response.status == 400
    ask(client, messages=long, truncate_prompt_tokens=-1, max_tokens=100)
    assert len(spied.jobs[-1].prompt) == 8192 - 100


def test_nothing_of_a_prompt_is_refused(world: World) -> None:
    client, _ = world
    fields = {"model": "m", "messages": [USER], "truncate_prompt_tokens": 0}
    response = client.post(PATH, fields)
    assert response.status == 400
    assert b"truncate_prompt_tokens" in response.body


def test_a_prompt_without_the_beginning_of_the_answer(world: World) -> None:
    client, spied = world
    ask(client)
    whole = list(spied.jobs[-1].prompt)
    ask(client, add_generation_prompt=False)
    short = list(spied.jobs[-1].prompt)
    assert short == whole[: len(short)]
    assert bytes(id_ for id_ in whole[len(short) :] if id_ < 256).endswith(b"assistant\n")
