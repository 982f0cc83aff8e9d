"""One request in the words of another protocol, and an answer as the next request's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ("to_completions", "to_messages", "to_responses")


def to_messages(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A chat request as one of Messages; None where Messages has no such fields."""
    if {"n", "logprobs", "top_logprobs", "seed"} & set(body):
        return None
    asked: dict[str, Any] = {
        "model": body["model"],
        "messages": body["messages"],
        "max_tokens": body.get("max_tokens", 4096),
    }
    if "stop" in body:
        stop = body["stop"]
        asked["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if tools := body.get("tools"):
        asked["tools"] = [
            {
                "name": tool["function"]["name"],
                "description": tool["function"].get("description", ""),
                "input_schema": tool["function"]["parameters"],
            }
            for tool in tools
        ]
    if body.get("tool_choice") == "none":
        asked["tool_choice"] = {"type": "none"}
    if body.get("parallel_tool_calls") is False:
        asked["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    return asked


def to_responses(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A chat request as one of Responses; None where Responses has no such fields."""
    if {"n", "logprobs", "top_logprobs", "seed", "stop", "response_format"} & set(body):
        return None
    asked: dict[str, Any] = {
        "model": body["model"],
        "input": [item for message in body["messages"] for item in _to_items(message)],
    }
    if "max_tokens" in body:
        asked["max_output_tokens"] = body["max_tokens"]
    for key in ("temperature", "parallel_tool_calls", "tool_choice"):
        if key in body:
            asked[key] = body[key]
    if tools := body.get("tools"):
        asked["tools"] = [{"type": "function", **tool["function"]} for tool in tools]
    return asked


def _to_items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role, content = message["role"], message.get("content")
    if role == "tool":
        id_ = message["tool_call_id"]
        yield {"type": "function_call_output", "call_id": id_, "output": content}
        return
    if thought := message.get("reasoning_content"):
        part = {"type": "reasoning_text", "text": thought}
        yield {"type": "reasoning", "summary": [], "content": [part]}
    if content or not message.get("tool_calls"):
        yield {"role": role, "content": content}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def to_completions(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A chat request as one of Completions; None where it is more than one question."""
    fields = ("max_tokens", "n", "seed", "stop", "temperature", "top_p")
    others = set(body) - {*fields, "model", "messages", "stream", "stream_options"}
    if others or [message["role"] for message in body["messages"]] != ["user"]:
        return None
    kept = {key: body[key] for key in fields if key in body}
    return {"model": body["model"], "prompt": body["messages"][0]["content"], **kept}
