"""An answer as the history of the next request, on its own protocol and on the others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.cases.convert import to_messages, to_responses
from tests.cases.message import Message
from tests.cases.played import CHAT, MESSAGES, RESPONSES

__all__ = ("as_messages", "history", "next_turn", "on_others")

NEXT = "And now?"


def next_turn(path: str, body: Mapping[str, Any], answer: Any) -> dict[str, Any] | None:
    """The next request of a client that sends back what it was answered, as it is; None: there is
    no such thing. `answer`: a unary body."""
    asked = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
    match path:
        case "/v1/chat/completions":
            said = answer["choices"][0]["message"]
            calls = [call["id"] for call in said.get("tool_calls") or ()]
            return {**asked, "messages": [*body["messages"], said, *_results(calls)]}
        case "/v1/messages":
            said = {"role": "assistant", "content": answer["content"]}
            calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            results = [_turn(message) for message in _results(calls)]
            return {**asked, "messages": [*body["messages"], said, *results]}
        case "/v1/responses" if answer["output"]:  # Nothing was said: nothing can be sent back.
            before = body["input"]
            if isinstance(before, str):
                before = [{"role": "user", "content": before}]
            calls = [i["call_id"] for i in answer["output"] if i["type"] == "function_call"]
            outputs = [
                {"type": "function_call_output", "call_id": id_, "output": "done"} for id_ in calls
            ] or [{"role": "user", "content": NEXT}]
            return {**asked, "input": [*before, *answer["output"], *outputs]}
        case _:
            return None


def on_others(
    path: str, body: Mapping[str, Any], message: Message
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, request) on each other protocol that has conversations: this answer behind the same
    question, or behind another one where the question is written in no words of theirs."""
    asked: dict[str, Any] = {"model": body["model"], "messages": [{"role": "user", "content": "?"}]}
    if path == CHAT:
        asked = {**asked, "messages": body["messages"]}
        asked |= {key: body[key] for key in ("tools",) if key in body}
    asked["messages"] = [*asked["messages"], *history(message)]
    made = {CHAT: asked, MESSAGES: as_messages(asked), RESPONSES: to_responses(asked)}
    for other, request in made.items():
        if other != path and request is not None:
            yield other, request


def history(message: Message) -> list[dict[str, Any]]:
    """The turn of a chat that says it, and the turns behind: results, or the next question."""
    said: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    if not message.calls:
        return [said, *_results([])]
    said["tool_calls"] = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(message.calls)
    ]
    return [said, *_results([call["id"] for call in said["tool_calls"]])]


def _results(calls: list[str]) -> list[dict[str, Any]]:
    results = [{"role": "tool", "tool_call_id": id_, "content": "done"} for id_ in calls]
    return results or [{"role": "user", "content": NEXT}]


def as_messages(body: dict[str, Any]) -> dict[str, Any] | None:
    """A chat request with its whole history in blocks."""
    asked = to_messages(body)
    if asked is not None:
        asked["messages"] = [_turn(message) for message in body["messages"]]
    return asked


def _turn(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": "done"}
        return {"role": "user", "content": [result]}
    blocks: list[dict[str, Any]] = []
    if thought := message.get("reasoning_content"):
        blocks.append({"type": "thinking", "thinking": thought, "signature": "from elsewhere"})
    content = message.get("content")
    if isinstance(content, list):
        blocks += content
    elif content:
        blocks.append({"type": "text", "text": content})
    blocks += [_use(call) for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": blocks}


def _use(call: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = {}  # Why: of a call that was cut off.
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": call["function"]["name"],
        "input": arguments,
    }
