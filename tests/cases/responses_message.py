"""What an answer of Responses says, in either mode: read strictly from its bytes.

Every rule of its stream that can be seen on the wire is asserted here: numbers from 0 without gaps,
items one at a time with rising index, deltas that add up to what their end says, one terminal event
with the whole response, and nothing after it.
"""

from __future__ import annotations

from typing import Any

from tests.cases.message import Call, Message, strict
from tokenwire.core.testing.client import Response

__all__ = ("read_responses",)

FIELDS = {
    "output_text": ("delta", "text"),
    "reasoning_text": ("delta", "text"),
    "function_call_arguments": ("delta", "arguments"),
    "custom_tool_call_input": ("delta", "input"),
}
STATUSES = ("completed", "incomplete", "failed")


def read_responses(response: Response) -> list[Message]:
    """The one choice."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return [_stream(response)]
    body = strict(response.body)
    if response.status != 200:
        return [Message(error=body["error"])]
    return [_message(body)]


def _stream(response: Response) -> Message:
    assert response.status == 200
    sent = [event for event in response.events() if event.comment is None]
    events = [strict(event.data) for event in sent]
    assert [event["type"] for event in events] == [event.event for event in sent]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[0]["response"]["status"] == "in_progress"
    items: list[Any] = []
    open_: Any = None
    pieces: list[str] = []
    for event in events[2:-1]:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert open_ is None, "one item at a time"
            assert event["output_index"] == len(items)
            open_, pieces = event["item"], []
            assert open_["status"] == "in_progress"
            continue
        assert open_ is not None
        assert event["output_index"] == len(items)
        if kind == "output_item.done":
            done = event["item"]
            assert (done["id"], done["type"]) == (open_["id"], open_["type"])
            assert done["status"] in ("completed", "incomplete")
            items.append(done)
            open_ = None
            continue
        assert event["item_id"] == open_["id"]
        name, _, what = kind.rpartition(".")
        if name == "content_part":
            continue
        piece, whole = FIELDS[name]
        if what == "delta":
            assert event[piece], "no delta is empty"
            pieces.append(event[piece])
        else:
            assert event[whole] == "".join(pieces)
    last = events[-1]
    body = last["response"]
    assert last["type"] == f"response.{body['status']}"
    assert body["status"] in STATUSES
    if body["status"] != "failed":
        assert open_ is None
    assert body["output"][: len(items)] == items
    assert body["id"] == events[0]["response"]["id"]
    return _message(body)


def _message(body: Any) -> Message:
    texts, thoughts, calls, logprobs = [], [], [], []
    for item in body["output"]:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    assert part["annotations"] == []
                    texts.append(part["text"])
                    logprobs += part["logprobs"]
            case "reasoning":
                thoughts += [part["text"] for part in item["content"]]
            case "function_call":
                calls.append(Call(item["name"], item["arguments"]))
    failed = body["status"] == "failed"
    assert (body["error"] is not None) == failed
    assert (body["incomplete_details"] is not None) == (body["status"] == "incomplete")
    usage = body["usage"] or {}
    return Message(
        content="".join(texts) if texts else None,
        reasoning="".join(thoughts) if thoughts else None,
        calls=tuple(calls),
        finish=None if failed else body["status"],
        output_tokens=usage.get("output_tokens"),
        prompt_tokens=usage.get("input_tokens"),
        logprobs=tuple(logprobs),
        error=body["error"],
    )
