"""Tools of a namespace, and tools that an item brings: one name to the model, two to the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tokenwire.core.dialogue import ToolCall
from tokenwire.core.errors import RequestError
from tokenwire.core.events import Finished, PartDelta, PartEnd, PartStart, Started, Usage
from tokenwire.core.signing import Keyring
from tokenwire.core.wire import HttpRequest, Stamp
from tokenwire.plugins.protocols.responses.call import ResponsesCall
from tokenwire.plugins.protocols.responses.codec import Responses

CODEC = Responses(Keyring([b"k" * 16]))
TOOL = {"type": "function", "name": "tide", "parameters": {"b": 1, "a": 1.0}}
PATCH = {"type": "custom", "name": "patch"}
PORT = {"type": "namespace", "name": "port", "description": "", "tools": [TOOL, PATCH]}
MORE = {"type": "additional_tools", "role": "developer", "tools": [PORT]}
ASKED = {"role": "user", "content": "hi"}


def decode(**fields: Any) -> ResponsesCall:
    body = json.dumps({"model": "m", "input": "x", **fields}).encode()
    call = CODEC.decode(HttpRequest("POST", "/v1/responses", body=body))
    assert isinstance(call, ResponsesCall)
    return call


@pytest.mark.parametrize("fields", [{"tools": [PORT]}, {"input": [MORE, ASKED]}])
def test_the_model_is_told_of_each(fields: dict[str, Any]) -> None:
    call = decode(**fields)
    first, second = call.dialogue.tools
    assert (first.name, first.parameters) == ("port__tide", '{"b": 1, "a": 1.0}')
    assert (second.name, second.custom) == ("port__patch", True)
    assert call.ignored == ()
    assert [turn.role for turn in call.dialogue.turns] == ["user"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("flat", "custom"), [("port__tide", False), ("port__patch", True)])
def test_a_call_names_its_namespace(stream: bool, flat: str, custom: bool) -> None:
    call = decode(tools=[PORT], stream=stream)
    reply = CODEC.reply(call, Stamp("req_x", 1.0, b"0123456789abcdef"))
    events = [
        Started(5, 2, "fp"),
        PartStart(0, "tool_call", flat, "c", custom),
        PartDelta(0, "{}"),
        PartEnd(0),
        Finished(0, "tool_calls"),
        Usage(5, 3, 2, 1, 1),
    ]
    said = b"".join(reply.push(event) for event in events)
    name = flat.removeprefix("port__")
    assert f'"name":"{name}","'.encode() in said
    assert b'"namespace":"port"' in said
    assert flat.encode() not in said


def test_a_name_that_only_looks_so_is_left_whole() -> None:
    reply = CODEC.reply(
        decode(tools=[TOOL | {"name": "port__tide"}]), Stamp("req_x", 1.0, b"0123456789abcdef")
    )
    events = [Started(5, 2, "fp"), PartStart(0, "tool_call", "port__tide", "c"), PartEnd(0)]
    said = b"".join(map(reply.push, [*events, Finished(0, "tool_calls"), Usage(5, 3, 2, 1, 1)]))
    assert b'"name":"port__tide"' in said
    assert b"namespace" not in said.split(b'"output":')[1].split(b"]")[0]


def test_a_call_comes_back_under_the_name_that_the_model_knows() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "tide", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "high"}
    call = decode(tools=[PORT], input=[ASKED, item | {"namespace": "port"}, output])
    part = call.dialogue.turns[1].parts[0]
    assert isinstance(part, ToolCall)
    assert part.name == "port__tide"
    client = CODEC.client()
    assert client is not None
    again = json.loads(client.request(call).body)
    assert again["input"][1] == item | {"namespace": "port"}


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"type": "namespace", "tools": []}, "tools[0].name"),
        ({"type": "namespace", "name": "a"}, "tools[0].tools"),
        ({"type": "namespace", "name": "a", "tools": [1]}, "tools[0].tools"),
        ({"type": "namespace", "name": "a", "tools": [{"name": "b"}]}, "tools[0].tools[0].type"),
    ],
)
def test_what_is_no_namespace_is_refused(tool: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        decode(tools=[tool])
    assert refused.value.param == param
