"""A key that nobody knows, put into each object of a request in turn, is listed or refused: none
is dropped in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tokenwire.core.call import Call, Count
from tokenwire.core.errors import RequestError
from tokenwire.core.host import Host, lone_services
from tokenwire.core.wire import HttpRequest

ODD = "zz_odd"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
PNG = "data:image/png;base64,iVBORw0KGgo="
CACHE = {"type": "ephemeral"}
SHAPE = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}

CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "content": "b",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "d", "type": "custom", "custom": {"name": "g", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": PNG}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_data": "AAAA"}},
            ],
        },
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        {
            "type": "custom",
            "custom": {
                "name": "g",
                "format": {
                    "type": "grammar",
                    "grammar": {"syntax": "regex", "definition": "a"},
                },
            },
        },
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
    "thinking": {"type": "enabled", "budget_tokens": 9},
    "response_format": SHAPE,
}
ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "auto",
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("chat_completions", "/v1/chat/completions", CHAT),
    *(
        (
            "chat_completions",
            "/v1/chat/completions",
            {"model": "m", "messages": [{"role": "user", "content": "a"}], **more},
        )
        for more in (
            {"tools": CHAT["tools"][:1], "tool_choice": ALLOWED},
            {
                "tools": CHAT["tools"][:1],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
            {"response_format": {"type": "regex", "regex": "a"}},
            {"response_format": {"type": "text"}},
            {"response_format": {"type": "choice", "choices": ["a"]}},
            {"structured_outputs": {"regex": "a"}},
        )
    ),
    (
        "completions",
        "/v1/completions",
        {
            "model": "m",
            "prompt": "a",
            "response_format": SHAPE,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ),
    (
        "completions",
        "/v1/completions",
        {"model": "m", "prompt": "a", "structured_outputs": {"json": SCHEMA}},
    ),
    (
        "messages",
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 4096,
            "system": [{"type": "text", "text": "s", "cache_control": CACHE}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "AAAA",
                            },
                        },
                        {
                            "type": "document",
                            "title": "t",
                            "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                        },
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "b"},
                        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t",
                            "content": [{"type": "text", "text": "r"}],
                        }
                    ],
                },
            ],
            "tools": [{"name": "f", "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto"},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "metadata": {"user_id": "u"},
            "output_config": {
                "effort": "high",
                "format": {"type": "json_schema", "schema": SCHEMA},
            },
        },
    ),
    (
        "responses",
        "/v1/responses",
        {
            "model": "m",
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "a"},
                        {"type": "input_image", "image_url": PNG},
                    ],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "b"}],
                },
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "r"},
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "s"}],
                    "content": [{"type": "reasoning_text", "text": "t"}],
                },
            ],
            "tools": [
                {"type": "function", "name": "f", "parameters": SCHEMA},
                {
                    "type": "custom",
                    "name": "g",
                    "format": {"type": "grammar", "syntax": "regex", "definition": "a"},
                },
                {
                    "type": "namespace",
                    "name": "n",
                    "description": "",
                    "tools": [{"type": "function", "name": "h", "parameters": SCHEMA}],
                },
            ],
            "tool_choice": {"type": "function", "name": "f"},
            "reasoning": {"effort": "high"},
            "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}},
            "stream": True,
            "stream_options": {"include_obfuscation": False},
            "conversation": {"id": "conv_1"},
        },
    ),
    (
        "generate",
        "/v1/generate",
        {"prompt": [1], "sampling": {"seed": 1}, "stopping": {"max_tokens": 3}},
    ),
    (
        "parse",
        "/parse",
        {"text": "a", "tools": [CHAT["tools"][0], {"name": "g", "parameters": SCHEMA}]},
    ),
    ("tokenize", "/tokenize", {"prompt": "a"}),
    ("tokenize", "/tokenize", {"request": {"protocol": "chat_completions", "body": {"a": 1}}}),
    ("detokenize", "/detokenize", {"tokens": [1]}),
    ("render", "/render", {"protocol": "chat_completions", "body": {"a": 1}}),
    (
        "responses",
        "/v1/conversations",
        {
            "items": [{"type": "message", "role": "user", "content": "a"}],
            "metadata": {"a": "b"},
        },
    ),
    (
        "responses",
        "/v1/conversations/conv_1/items",
        {"items": [{"type": "message", "role": "user", "content": "a"}]},
    ),
    ("responses", "/v1/conversations/conv_1", {"metadata": {"a": "b"}}),
]
FREE = ("schema", "parameters", "input_schema", "input", "body", "metadata", "json", "items")
"""Whose keys are the client's own; items of a conversation are kept, and given back, whole."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            if not (key in FREE and not (key == "input" and isinstance(inner, list))):
                yield from places(inner, (*path, key))
        # Why not in all metadata: that of Messages is an object of known fields.
        if isinstance(value.get("metadata"), dict) and "user_id" in value["metadata"]:
            yield (*path, "metadata")
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from places(inner, (*path, k))


ALL = [
    pytest.param(protocol, route, body, path, id=f"{route}:{'.'.join(map(str, path))}")
    for protocol, route, body in CASES
    for path in places(body)
]


@pytest.mark.parametrize(("protocol", "route", "body", "path"), ALL)
def test_it_is_listed_or_refused(
    protocol: str, route: str, body: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    codec = Host().codecs.build(protocol, {}, lone_services())
    params = {"conversation_id": "conv_1"} if "conv_1" in route else {}

    def asked(body: Any) -> Any:
        data = json.dumps({k: v for k, v in body.items() if v is not None}).encode()
        return codec.decode(HttpRequest("POST", route, body=data, path_params=params))

    asked(body)  # It is sound.
    changed = deepcopy(body)
    inner: Any = changed
    for step in path:
        inner = inner[step]
    inner[ODD] = 1
    refusal = None
    try:
        call = asked(changed)
    except RequestError as error:
        refusal = f"{error.message} {error.param}"
    if refusal is not None:
        assert ODD in refusal
        return
    call = call.call if isinstance(call, Count) else call
    assert isinstance(call, Call), "a query has no header to list it in, so it must refuse"
    listed = [name for name in call.ignored if name.endswith(f".{ODD}") or name == ODD]
    assert listed
