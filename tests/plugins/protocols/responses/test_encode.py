"""Replies: the events in their order, statuses, seals; all of it as the official SDK reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tokenwire.core.errors import ErrorKind
from tokenwire.core.events import (
    Event,
    Failed,
    Finished,
    Logprobs,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    TokenLogprob,
    Usage,
)
from tokenwire.core.ports.codec import KeptReply
from tokenwire.core.sealing import REASONING, bound_to, unseal
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.strategies import Shape, event_streams
from tokenwire.core.wire import HttpRequest, SseReader, Stamp
from tokenwire.plugins.protocols.responses.codec import Responses

KEYS = Keyring([b"k" * 16])
CODEC = Responses(KEYS)
STAMP = Stamp("req_x", 1_700_000_000.0, b"0123456789abcdef")
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)

SAID: list[Event] = [
    Started(5, 2, "fp"),
    PartStart(0, "reasoning"),
    PartDelta(0, "so"),
    PartEnd(0),
    PartStart(0, "text"),
    PartDelta(0, "hi\u2028"),
    PartEnd(0),
]
END: list[Event] = [Finished(0, "stop"), Usage(5, 3, 2, 1, 1)]


def reply(**fields: Any) -> KeptReply:
    body = json.dumps({"model": "m", "input": "x", **fields}).encode()
    asked = CODEC.decode(HttpRequest("POST", "/v1/responses", body=body))
    made = CODEC.reply(asked, STAMP)  # type: ignore[arg-type]
    assert isinstance(made, KeptReply)
    return made


def read(data: bytes) -> list[Any]:
    messages = SseReader().push(data)
    events = [json.loads(message.data) for message in messages]
    assert [message.event for message in messages] == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        EVENT.validate_python(event)
    return events


def stream(events: list[Event], **fields: Any) -> list[Any]:
    made = reply(stream=True, **fields)
    return read(b"".join(made.push(event) for event in events))


def whole(events: list[Event], **fields: Any) -> Any:
    made = reply(**fields)
    body = [made.push(event) for event in events][-1]
    Response.model_validate_json(body)
    return json.loads(body)


def test_the_order_of_events() -> None:
    events = stream([*SAID, *END])
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert events[-1]["response"] == whole([*SAID, *END])
    statuses = [event["item"]["status"] for event in events if "item" in event]
    assert statuses == ["in_progress", "completed"] * 2


@given(event_streams(Shape(logprobs=True, custom=True, details=True)))
def test_whatever_is_said_is_what_the_sdk_knows(events: list[Event]) -> None:
    fields = {"include": ["message.output_text.logprobs", "reasoning.encrypted_content"]}
    streamed = stream(events, **fields)
    assert streamed[-1]["response"] == whole(events, **fields)
    items = {event["output_index"]: event["item"] for event in streamed if "item" in event}
    assert list(items.values()) == streamed[-1]["response"]["output"]


@pytest.mark.parametrize(
    ("reason", "status", "last"),
    [
        ("stop", "completed", "completed"),
        ("stop_sequence", "completed", "completed"),
        ("length", "incomplete", "incomplete"),
        ("context_length", "incomplete", "incomplete"),
        ("cancelled", "cancelled", "incomplete"),
    ],
)
def test_how_it_ends(reason: Any, status: str, last: str) -> None:
    events = stream([*SAID, Finished(0, reason), Usage(1, 1)])
    body = events[-1]["response"]
    assert events[-1]["type"] == f"response.{last}"
    assert body["status"] == status
    assert (body["incomplete_details"] is not None) == (status == "incomplete")
    items = [item["status"] for item in body["output"]]
    assert items == ["completed", "completed" if status == "completed" else "incomplete"]


def test_a_call_that_was_cut_off_is_incomplete_and_a_whole_one_is_not() -> None:
    calls: list[Event] = [
        Started(1),
        PartStart(0, "tool_call", "f"),
        PartEnd(0),
        PartStart(0, "tool_call", "g", custom=True),
        PartDelta(0, "*** Beg"),
        PartEnd(0, complete=False),
        Finished(0, "length"),
        Usage(1, 1),
    ]
    first, second = whole(calls)["output"]
    assert (first["type"], first["arguments"], first["status"]) == (
        "function_call",
        "{}",
        "completed",
    )
    assert (second["type"], second["input"], second["status"]) == (
        "custom_tool_call",
        "*** Beg",
        "incomplete",
    )
    names = [event["type"] for event in stream(calls)]
    assert names.count("response.function_call_arguments.delta") == 1
    assert "response.custom_tool_call_input.done" in names


def test_a_failure_is_the_last_event_and_says_what_there_is() -> None:
    failed = Failed(ErrorKind.OVERLOADED, "too much")
    events = stream([*SAID[:-1], failed])
    assert events[-1]["type"] == "response.failed"
    body = events[-1]["response"]
    assert body["error"] == {"code": "server_error", "message": "too much", "type": "overloaded"}
    assert [item["status"] for item in body["output"]] == ["completed", "incomplete"]
    assert [event["type"] for event in stream([failed])] == ["error"]


def test_reasoning_is_sealed_when_asked_for() -> None:
    item = whole([*SAID, *END], include=["reasoning.encrypted_content"])["output"][0]
    aad = bound_to("fp", "default")
    assert unseal(KEYS, REASONING, item["encrypted_content"], aad) == b"so"
    assert "encrypted_content" not in whole([*SAID, *END])["output"][0]


def test_reasoning_stands_as_its_summary_when_one_is_asked_for() -> None:
    events = stream([*SAID, *END], reasoning={"summary": "auto"})
    names = [event["type"] for event in events if "reasoning" in event["type"]]
    assert names == [
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
    ]
    item = events[-1]["response"]["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": "so"}]
    assert "content" not in item


def test_logprobs_go_with_their_text() -> None:
    token = TokenLogprob(7, "hi", b"hi", -0.5, (TokenLogprob(8, "ho", b"ho", -1.5),))
    said: list[Event] = [
        Started(1),
        PartStart(0, "text"),
        Logprobs(0, (token,)),
        PartDelta(0, "hi"),
        PartEnd(0),
        *END,
    ]
    events = stream(said, include=["message.output_text.logprobs"], top_logprobs=1)
    delta = next(event for event in events if event["type"].endswith("output_text.delta"))
    assert delta["logprobs"][0]["top_logprobs"][0]["token"] == "ho"
    part = events[-1]["response"]["output"][0]["content"][0]
    assert part["logprobs"] == delta["logprobs"]


def test_what_the_request_said_is_said_back_as_it_was_written() -> None:
    tools = [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {}}]
    fields = {
        "tools": tools,
        "metadata": {"a": "b"},
        "instructions": "Be brief.",
        "reasoning": {"effort": "low"},
        "service_tier": "auto",
        "temperature": 0.25,
    }
    body = whole([*SAID, *END], **fields)
    assert {name: body[name] for name in fields} == fields | {"service_tier": "default"}


def test_an_answer_in_the_background_waits_is_begun_and_can_be_cancelled() -> None:
    made = reply(stream=True, background=True)
    assert made.stored().status == "queued"
    data = made.begin()
    assert json.loads(made.stored().body)["status"] == "queued"
    data += b"".join(made.push(event) for event in SAID[:3])
    shown = json.loads(made.stored().body)
    assert shown["status"] == "in_progress"
    assert shown["output"][0]["content"][0]["text"] == "so"
    events = read(data + made.cancel())
    assert [event["type"].removeprefix("response.") for event in events[:3]] == [
        "created",
        "queued",
        "in_progress",
    ]
    assert events[-1]["response"]["status"] == "cancelled"
    assert made.stored().status == "over"


def test_what_is_stored_has_ids_and_tells_question_from_answer() -> None:
    made = reply()
    for event in (*SAID, *END):
        made.push(event)
    kept = made.stored()
    assert [json.loads(item.data)["type"] for item in kept.input] == ["message"]
    assert [json.loads(item.data)["type"] for item in kept.output] == ["reasoning", "message"]
    items = (*kept.input, *kept.output)
    assert len({item.id for item in items}) == 3
    assert all(json.loads(item.data)["id"] == item.id for item in items)
    assert made.id == kept.id
