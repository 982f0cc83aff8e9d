"""The official `openai` client speaking Responses to a live server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from tests.clients.live import LiveServer

TOOLS: list[Any] = [
    {
        "type": "function",
        "name": "get_tide",
        "description": "The tide at a port",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}}},
        "strict": False,
    }
]


@pytest.fixture
def client(scripted: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{scripted.url}/v1", api_key="none", max_retries=0, timeout=20
    ) as made:
        yield made


def play(name: str) -> dict[str, str]:
    return {"x-mock-script": name}


def test_unary_and_stream_say_the_same(client: openai.OpenAI) -> None:
    whole = client.responses.create(model="mock", input="hi", temperature=0)
    Response.model_validate(whole.model_dump())
    with client.responses.stream(model="mock", input="hi", temperature=0) as stream:
        text = "".join(
            event.delta for event in stream if event.type == "response.output_text.delta"
        )
        final = stream.get_final_response()
    assert text == whole.output_text == final.output_text
    assert whole.usage is not None
    assert final.usage is not None
    assert final.usage.output_tokens == whole.usage.output_tokens > 0


def test_tool_calls(client: openai.OpenAI) -> None:
    with client.responses.stream(
        model="script", input="Tide?", tools=TOOLS, extra_headers=play("tools")
    ) as stream:
        pieces = [
            event.delta
            for event in stream
            if event.type == "response.function_call_arguments.delta"
        ]
        final = stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["port"] for call in calls] == ["Brest", "Cork"]
    assert "".join(pieces) == "".join(call.arguments for call in calls)
    assert final.status == "completed"
    items: list[Any] = [{"role": "user", "content": "Tide?"}]
    items += [item.model_dump(exclude_none=True) for item in final.output]
    items += [
        {"type": "function_call_output", "call_id": call.call_id, "output": "high"}
        for call in calls
    ]
    again = client.responses.create(model="script", input=items, tools=TOOLS, store=False)
    assert again.status == "completed"
    more = client.responses.create(
        model="script", input=items[-2:], tools=TOOLS, previous_response_id=final.id
    )
    assert more.previous_response_id == final.id


def test_reasoning_in_and_out(client: openai.OpenAI) -> None:
    made = client.responses.create(
        model="script",
        input="2+2?",
        include=["reasoning.encrypted_content"],
        extra_headers=play("think"),
    )
    thought = made.output[0]
    assert thought.type == "reasoning"
    assert thought.content is not None
    assert thought.content[0].text == "two and two"
    assert thought.encrypted_content
    assert made.output_text.strip() == "It is 4 🌊."
    items: list[Any] = [
        {"role": "user", "content": "2+2?"},
        *(item.model_dump(exclude_none=True) for item in made.output),
        {"role": "user", "content": "sure?"},
    ]
    again = client.responses.with_raw_response.create(model="script", input=items)
    assert "x-tokenwire-ignored" not in again.headers
    summarised = client.responses.create(
        model="script", input="2+2?", reasoning={"summary": "auto"}, extra_headers=play("think")
    )
    first = summarised.output[0]
    assert first.type == "reasoning"
    assert first.summary[0].text == "two and two"


def test_what_is_stored(client: openai.OpenAI) -> None:
    made = client.responses.create(model="mock", input="hi", metadata={"a": "b"})
    assert client.responses.retrieve(made.id) == made
    listed = list(client.responses.input_items.list(made.id))
    assert [item.type for item in listed] == ["message"]
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="mock", input="more", previous_response_id=made.id)
    assert refused.value.param == "previous_response_id"


def test_conversations(client: openai.OpenAI) -> None:
    talk = client.conversations.create(items=[{"role": "user", "content": "I am Bo."}])
    client.responses.create(model="mock", input="hi", conversation=talk.id)
    items = list(client.conversations.items.list(talk.id, order="asc", limit=2))
    assert [getattr(item, "role", None) for item in items] == ["user", "user", "assistant"]
    assert client.conversations.update(talk.id, metadata={"c": "d"}).metadata == {"c": "d"}
    assert client.conversations.delete(talk.id).deleted


def until_over(client: openai.OpenAI, made: Response) -> Response:
    deadline = time.monotonic() + 30
    while made.status in ("queued", "in_progress") and time.monotonic() < deadline:
        time.sleep(0.05)
        made = client.responses.retrieve(made.id)
    return made


def test_in_the_background(client: openai.OpenAI) -> None:
    made = client.responses.create(model="mock", input="hi", background=True)
    assert made.status == "queued"
    over = until_over(client, made)
    assert over.status == "completed"
    events = list(client.responses.retrieve(made.id, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    rest = list(client.responses.retrieve(made.id, stream=True, starting_after=3))
    assert rest == events[4:]
    assert events[-1].type == "response.completed"


def test_cancelling(client: openai.OpenAI, scripted: LiveServer) -> None:
    scripted.script("long", {"pieces": ["a ", {"repeat": "b ", "times": 5000}], "finish": "eos"})
    stream = client.responses.create(
        model="script", input="x", background=True, stream=True, extra_headers=play("long")
    )
    first = next(iter(stream))
    assert first.type == "response.created"
    stream.close()
    assert client.responses.cancel(first.response.id).status == "cancelled"
    assert client.responses.retrieve(first.response.id).status == "cancelled"


def test_counting_tokens(client: openai.OpenAI) -> None:
    counted = client.responses.input_tokens.count(model="mock", input="hi")
    made = client.responses.create(model="mock", input="hi")
    assert made.usage is not None
    assert counted.input_tokens == made.usage.input_tokens


def test_a_cut_off_answer_is_incomplete(client: openai.OpenAI) -> None:
    stream = client.responses.create(
        model="script", input="x", tools=TOOLS, stream=True, extra_headers=play("cut")
    )
    last = list(stream)[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == "max_output_tokens"


def test_a_late_failure_is_an_event(client: openai.OpenAI) -> None:
    stream = client.responses.create(
        model="script", input="x", stream=True, extra_headers=play("late")
    )
    last = list(stream)[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    with pytest.raises(openai.APIStatusError):
        client.responses.create(model="script", input="x", extra_headers=play("late"))
