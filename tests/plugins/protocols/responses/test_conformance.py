"""The codec kit, over requests of every kind."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tokenwire.core.host import Host
from tokenwire.core.signing import Keyring
from tokenwire.core.testing.codec_kit import LAWS, conform, run_codec_kit
from tokenwire.core.wire import HttpRequest
from tokenwire.plugins.protocols import responses
from tokenwire.plugins.protocols.responses.codec import Responses

CODEC: Final = Responses(Keyring([b"k" * 16]))
FULL: Final[dict[str, Any]] = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Tide?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "c", "name": "get_tide", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "high"},
    ],
    "tools": [
        {"type": "function", "name": "get_tide", "parameters": {"type": "object"}, "strict": True},
        {"type": "custom", "name": "patch", "format": {"type": "text"}},
        {"type": "web_search"},
    ],
    "tool_choice": {"type": "function", "name": "get_tide"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "metadata": {"a": "b"},
    "stream": True,
}


@pytest.mark.parametrize("law", LAWS)
def test_every_law_holds(law: str) -> None:
    bodies = [json.dumps(body).encode() for body in ({"model": "m", "input": "hi"}, FULL)]
    requests = [HttpRequest("POST", "/v1/responses", body=body) for body in bodies]
    run_codec_kit(CODEC, [(request, CODEC.decode(request)) for request in requests], laws=(law,))


def test_it_conforms_from_the_shell() -> None:
    host = Host({"responses": responses}, entry_points=False)
    assert conform(host, "responses") == LAWS
