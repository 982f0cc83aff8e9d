"""The official `openai` client against a live server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.clients.live import LiveServer

ASK: list[Any] = [{"role": "user", "content": "Tide at Brest and at Cork?"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "description": "The tide at a port",
            "parameters": {"type": "object", "properties": {"port": {"type": "string"}}},
        },
    }
]


@pytest.fixture
def client(server: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def play(name: str) -> dict[str, str]:
    return {"x-mock-script": name}


def test_models(client: openai.OpenAI) -> None:
    assert {"mock", "script"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("mock").id == "mock"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nope")


def test_unary_and_stream_say_the_same(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="mock", messages=ASK, temperature=0)
    stream = client.chat.completions.create(
        model="mock",
        messages=ASK,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    text, usage, reasons = "", None, []
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert whole.choices[0].message.content == text
    assert reasons == [whole.choices[0].finish_reason] == ["stop"]
    assert whole.usage is not None
    assert usage is not None
    assert usage.completion_tokens == whole.usage.completion_tokens > 0


def test_tools_unary(client: openai.OpenAI, scripted: LiveServer) -> None:
    answer = client.chat.completions.create(
        model="script", messages=ASK, tools=TOOLS, extra_headers=play("tools")
    )
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls is not None
    arguments = [json.loads(call.function.arguments) for call in message.tool_calls]
    assert arguments == [{"port": "Brest"}, {"port": "Cork"}]
    assert len({call.id for call in message.tool_calls}) == 2


def test_tools_stream_through_the_sdks_own_accumulator(
    client: openai.OpenAI, scripted: LiveServer
) -> None:
    with client.chat.completions.stream(
        model="script", messages=ASK, tools=TOOLS, extra_headers=play("tools")
    ) as stream:
        for _ in stream:
            pass
        message = stream.get_final_completion().choices[0].message
    assert message.content is not None
    assert message.content.strip() == "I will look."
    assert message.tool_calls is not None
    assert [call.function.name for call in message.tool_calls] == ["get_tide", "get_tide"]
    assert json.loads(message.tool_calls[1].function.arguments) == {"port": "Cork"}


def test_tool_results_go_back(client: openai.OpenAI, scripted: LiveServer) -> None:
    first = client.chat.completions.create(
        model="script", messages=ASK, tools=TOOLS, extra_headers=play("tools")
    )
    message = first.choices[0].message
    assert message.tool_calls is not None
    history = [
        *ASK,
        message.to_dict(),
        *(
            {"role": "tool", "tool_call_id": call.id, "content": "3.1 m"}
            for call in message.tool_calls
        ),
    ]
    again = client.chat.completions.create(model="script", messages=history, tools=TOOLS)
    assert again.choices[0].message.content


def test_reasoning_is_apart(client: openai.OpenAI, scripted: LiveServer) -> None:
    answer = client.chat.completions.create(
        model="script", messages=ASK, extra_headers=play("think")
    )
    message = answer.choices[0].message
    assert message.content == "It is 4 🌊."
    assert message.model_extra is not None
    assert message.model_extra["reasoning_content"] == "two and two"
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens


def test_logprobs_spell_the_answer(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="mock", messages=ASK, logprobs=True, top_logprobs=2, max_tokens=8
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    spelled = b"".join(bytes(token.bytes or []) for token in logprobs.content)
    assert spelled.decode() == answer.choices[0].message.content
    assert all(len(token.top_logprobs) == 2 for token in logprobs.content)


def test_n_and_stop(client: openai.OpenAI, scripted: LiveServer) -> None:
    answer = client.chat.completions.create(
        model="script", messages=ASK, n=2, stop=["STOP"], extra_headers=play("halt")
    )
    assert [choice.message.content for choice in answer.choices] == ["one ", "one "]
    assert [choice.index for choice in answer.choices] == [0, 1]


def test_a_cut_call_is_reported_as_cut(client: openai.OpenAI, scripted: LiveServer) -> None:
    answer = client.chat.completions.create(
        model="script", messages=ASK, tools=TOOLS, extra_headers=play("cut")
    )
    assert answer.choices[0].finish_reason == "length"


def test_a_failure_in_a_stream_raises(client: openai.OpenAI, scripted: LiveServer) -> None:
    stream = client.chat.completions.create(
        model="script", messages=ASK, stream=True, extra_headers=play("late")
    )
    with pytest.raises(openai.APIError):
        list(stream)


def test_errors_have_their_types(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as found:
        client.chat.completions.create(model="nope", messages=ASK)
    assert found.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="mock", messages=ASK, temperature=9)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="mock", messages=[])


async def _ask(client: openai.AsyncOpenAI, text: str) -> str:
    answer = await client.chat.completions.create(
        model="mock", messages=[{"role": "user", "content": text}]
    )
    return answer.choices[0].message.content or ""


def test_the_async_client(server: LiveServer) -> None:
    import asyncio

    async def go() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            return await asyncio.gather(*(_ask(client, f"hi {k}") for k in range(16)))

    assert len(set(asyncio.run(go()))) == 1
