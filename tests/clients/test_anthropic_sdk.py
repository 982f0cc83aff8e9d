"""The official `anthropic` client against a live server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.clients.live import LiveServer

ASK: list[Any] = [{"role": "user", "content": "Tide at Brest and at Cork?"}]
TOOLS: list[Any] = [
    {
        "name": "get_tide",
        "description": "The tide at a port",
        "input_schema": {"type": "object", "properties": {"port": {"type": "string"}}},
    }
]


@pytest.fixture
def client(server: LiveServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=server.url, api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def play(name: str) -> dict[str, str]:
    return {"x-mock-script": name}


def test_models(client: anthropic.Anthropic) -> None:
    assert {"mock", "script"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("mock").type == "model"


def test_unary_and_stream_say_the_same(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(model="mock", max_tokens=200, messages=ASK, system="Be brief.")
    with client.messages.stream(
        model="mock", max_tokens=200, messages=ASK, system="Be brief."
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert whole.content[0].type == "text"
    assert whole.content[0].text == text
    assert final.stop_reason == whole.stop_reason == "end_turn"
    assert final.usage.output_tokens == whole.usage.output_tokens > 0
    prompt = whole.usage.input_tokens + (whole.usage.cache_read_input_tokens or 0)
    counted = client.messages.count_tokens(model="mock", messages=ASK, system="Be brief.")
    assert counted.input_tokens == prompt


@pytest.mark.parametrize("stream", [True, False])
def test_tools(client: anthropic.Anthropic, scripted: LiveServer, stream: bool) -> None:
    options: Any = {
        "model": "script",
        "max_tokens": 200,
        "messages": ASK,
        "tools": TOOLS,
        "extra_headers": play("tools"),
    }
    if stream:
        with client.messages.stream(**options) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**options)
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert [block.input for block in message.content[1:]] == [{"port": "Brest"}, {"port": "Cork"}]
    history = [
        *ASK,
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": block.id, "content": "3.1 m"}
                for block in message.content[1:]
            ],
        },
    ]
    again = client.messages.create(model="script", max_tokens=200, messages=history, tools=TOOLS)
    assert again.content


def test_signed_thinking_comes_back_verified(
    client: anthropic.Anthropic, scripted: LiveServer
) -> None:
    with client.messages.stream(
        model="script",
        max_tokens=2000,
        messages=ASK,
        thinking={"type": "enabled", "budget_tokens": 1024},
        extra_headers=play("think"),
    ) as stream:
        message = stream.get_final_message()
    thinking, text = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "two and two"
    assert thinking.signature
    assert text.type == "text"
    assert text.text == "It is 4 🌊."

    def ignored(signature: str) -> str:
        block = {"type": "thinking", "thinking": thinking.thinking, "signature": signature}
        history: Any = [
            *ASK,
            {"role": "assistant", "content": [block, {"type": "text", "text": text.text}]},
            {"role": "user", "content": "And 3+3?"},
        ]
        raw = client.messages.with_raw_response.create(
            model="script", max_tokens=100, messages=history
        )
        return raw.headers.get("x-tokenwire-ignored", "")

    assert "signature" not in ignored(thinking.signature)
    assert "signature" in ignored("Zm9yZWlnbg==")


def test_a_stop_sequence_is_echoed(client: anthropic.Anthropic, scripted: LiveServer) -> None:
    message = client.messages.create(
        model="script",
        max_tokens=100,
        messages=ASK,
        stop_sequences=["STOP"],
        extra_headers=play("halt"),
    )
    assert message.stop_reason == "stop_sequence"
    assert message.stop_sequence == "STOP"
    assert message.content[0].type == "text"
    assert message.content[0].text == "one "


def test_a_failure_in_a_stream_raises(client: anthropic.Anthropic, scripted: LiveServer) -> None:
    with (
        pytest.raises(anthropic.APIStatusError),
        client.messages.stream(
            model="script", max_tokens=100, messages=ASK, extra_headers=play("late")
        ) as stream,
    ):
        stream.get_final_message()


def test_errors_have_their_types(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as found:
        client.messages.create(model="nope", max_tokens=9, messages=ASK)
    assert found.value.request_id
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        client.messages.create(model="mock", max_tokens=-1, messages=ASK)
