"""The official `openai` client's completions against a live server."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.clients.live import LiveServer

PROMPT = "Tide at Brest:"
ANSWER = "This is the mock engine"


@pytest.fixture
def client(server: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def test_unary_and_stream_say_the_same(client: openai.OpenAI) -> None:
    whole = client.completions.create(model="mock", prompt=PROMPT, max_tokens=23, n=2, logprobs=2)
    stream = client.completions.create(
        model="mock",
        prompt=PROMPT,
        max_tokens=23,
        n=2,
        logprobs=2,
        stream=True,
        stream_options={"include_usage": True},
    )
    texts, reasons, tokens, usage = ["", ""], ["", ""], [[], []], None
    for chunk in stream:
        assert chunk.id.startswith("cmpl-")
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            reasons[choice.index] = choice.finish_reason or reasons[choice.index]
            if choice.logprobs is not None:
                tokens[choice.index] += choice.logprobs.tokens or []
    assert texts == [choice.text for choice in whole.choices] == [ANSWER] * 2
    assert reasons == [choice.finish_reason for choice in whole.choices] == ["length"] * 2
    assert usage is not None
    assert whole.usage is not None
    assert usage.completion_tokens == whole.usage.completion_tokens == 46
    for choice, streamed in zip(whole.choices, tokens, strict=True):
        assert choice.logprobs is not None
        assert choice.logprobs.tokens == streamed
        assert "".join(streamed) == ANSWER


def test_several_prompts_are_choices_in_their_order(client: openai.OpenAI) -> None:
    asked = client.completions.create(
        model="mock", prompt=["ab", "cd"], n=2, echo=True, max_tokens=4
    )
    assert [choice.index for choice in asked.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in asked.choices] == ["abThis", "abThis", "cdThis", "cdThis"]


def test_ids_are_a_prompt(client: openai.OpenAI) -> None:
    asked = client.completions.create(
        model="mock", prompt=[[72, 105], [33]], echo=True, max_tokens=1
    )
    assert [choice.text for choice in asked.choices] == ["HiT", "!T"]
    assert asked.usage is not None
    assert asked.usage.prompt_tokens == 3


def test_scoring_a_prompt(client: openai.OpenAI) -> None:
    asked = client.completions.create(
        model="mock", prompt="abc", echo=True, max_tokens=0, logprobs=1
    )
    found = asked.choices[0].logprobs
    assert found is not None
    assert found.tokens == ["a", "b", "c"]
    assert found.text_offset == [0, 1, 2]
    assert found.token_logprobs is not None
    assert found.token_logprobs[0] is None
    assert all(value is not None and value < 0 for value in found.token_logprobs[1:])


def test_what_is_refused_is_an_error_of_the_sdk(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="best_of cannot be streamed"):
        client.completions.create(model="mock", prompt="a", best_of=2, stream=True)
    with pytest.raises(openai.BadRequestError, match="no tokens for filling a gap"):
        client.completions.create(model="mock", prompt="a", suffix="b")
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="nope", prompt="a")
