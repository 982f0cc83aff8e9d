"""The search for deferred tools that the client runs: a function to the model, items of their own
kind to the client, and what it finds is offered from there on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseToolSearchCall

from tokenwire.core.call import Need
from tokenwire.core.dialogue import Text, ToolCall, ToolResult
from tokenwire.core.errors import RequestError
from tokenwire.core.events import (
    Event,
    Finished,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    Usage,
)
from tokenwire.core.ports.codec import KeptReply
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import StoredAnswer
from tokenwire.core.wire import HttpRequest, Stamp
from tokenwire.plugins.protocols.responses.call import ResponsesCall
from tokenwire.plugins.protocols.responses.codec import Responses

CODEC = Responses(Keyring([b"k" * 16]))
STAMP = Stamp("req_x", 1.0, b"0123456789abcdef")
TOOL = {"type": "function", "name": "tide", "parameters": {"b": 1}, "defer_loading": True}
SEARCH = {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {}}
ASKED = {"role": "user", "content": "hi"}
BY_CLIENT = {"call_id": "c", "execution": "client", "status": "completed"}
CALL = {"type": "tool_search_call", "arguments": {"query": "tide"}, **BY_CLIENT}
FOUND = {"type": "tool_search_output", "tools": [TOOL], **BY_CLIENT}
PORT = {"type": "namespace", "name": "port", "description": "", "tools": [TOOL]}
QUERY = '{"query": "tide"}'


def decode(**fields: Any) -> ResponsesCall:
    body = json.dumps({"model": "m", "input": "x", **fields}).encode()
    call = CODEC.decode(HttpRequest("POST", "/v1/responses", body=body))
    assert isinstance(call, ResponsesCall)
    return call


def names(call: ResponsesCall) -> list[str]:
    return [tool.name for tool in call.dialogue.tools]


def events(text: str, *, complete: bool = True) -> list[Event]:
    return [
        Started(5, 2, "fp"),
        PartStart(0, "tool_call", "tool_search", "c"),
        *([PartDelta(0, text[:5]), PartDelta(0, text[5:])] if text else []),
        PartEnd(0, complete),
        Finished(0, "tool_calls" if complete else "length"),
        Usage(5, 3, 2, 1, 1),
    ]


def test_it_is_a_function_to_the_model() -> None:
    call = decode(tools=[SEARCH])
    (spec,) = call.dialogue.tools
    assert (spec.name, spec.description, spec.parameters) == ("tool_search", "Finds.", "{}")
    assert call.ignored == ()


@pytest.mark.parametrize("execution", ["server", None])
def test_one_that_a_host_runs_is_ignored_and_deferred_tools_are_told(execution: str | None) -> None:
    call = decode(tools=[SEARCH | {"execution": execution}, TOOL])
    assert names(call) == ["tide"]
    assert call.ignored == ("tools[].tool_search", "tools[].defer_loading")


@pytest.mark.parametrize(
    ("text", "value"),
    [(QUERY, {"query": "tide"}), ("", {}), ("{no JSON", "{no JSON"), ("[" * 3000, "[" * 3000)],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_of_it_is_an_item_of_its_own(stream: bool, text: str, value: object) -> None:
    call = decode(tools=[SEARCH], stream=stream)
    reply = CODEC.reply(call, STAMP)
    said = [reply.push(event) for event in events(text)]
    whole = b"".join(said)
    assert b".delta" not in whole
    assert isinstance(reply, KeptReply)
    (stored,) = reply.stored().output
    item = ResponseToolSearchCall.model_validate_json(stored.data)
    assert (item.call_id, item.execution, item.status) == ("c", "client", "completed")
    assert item.arguments == value
    client = CODEC.client()
    assert client is not None
    reader = client.reader(call)
    read = [*reader.push(whole), *reader.flush()]
    (start,) = (event for event in read if isinstance(event, PartStart))
    assert (start.kind, start.name, start.call_id) == ("tool_call", "tool_search", "c")
    written = "".join(event.text for event in read if isinstance(event, PartDelta))
    assert written == value or json.loads(written) == value


def test_a_function_of_that_name_stays_one() -> None:
    reply = CODEC.reply(decode(tools=[TOOL | {"name": "tool_search"}]), STAMP)
    said = b"".join(map(reply.push, events(QUERY)))
    assert b'"type":"function_call"' in said


def test_one_that_is_cut_off_is_incomplete() -> None:
    reply = CODEC.reply(decode(tools=[SEARCH]), STAMP)
    body = json.loads(b"".join(map(reply.push, events(QUERY[:9], complete=False))))
    (item,) = body["output"]
    assert (item["status"], item["arguments"]) == ("incomplete", QUERY[:9])


def test_what_it_finds_is_shown_by_name_and_offered() -> None:
    call = decode(tools=[SEARCH], input=[ASKED, CALL, FOUND | {"tools": [TOOL, PORT]}])
    assert names(call) == ["tool_search", "tide", "port__tide"]
    assert not any("defer_loading" in tool.extra for tool in call.dialogue.tools)
    assert call.ignored == ()
    asked, result = (turn.parts[0] for turn in call.dialogue.turns[1:])
    assert isinstance(asked, ToolCall)
    assert (asked.name, asked.arguments) == ("tool_search", '{"query":"tide"}')
    assert isinstance(result, ToolResult)
    assert result.call_id == asked.id
    assert result.parts == (Text("Found these tools:\ntide\nport__tide"),)
    client = CODEC.client()
    assert client is not None
    again = json.loads(client.request(call).body)
    assert again["input"] == [ASKED, CALL, FOUND | {"tools": [TOOL, PORT]}]


def test_a_deferred_tool_is_told_once_it_is_found() -> None:
    assert names(decode(tools=[SEARCH, TOOL])) == ["tool_search"]
    found = decode(tools=[SEARCH, TOOL], input=[ASKED, CALL, FOUND])
    assert names(found) == ["tool_search", "tide"]
    nothing = decode(tools=[SEARCH, TOOL], input=[ASKED, CALL, FOUND | {"tools": []}])
    assert names(nothing) == ["tool_search"]
    result = nothing.dialogue.turns[-1].parts[0]
    assert isinstance(result, ToolResult)
    assert result.parts == (Text("No tools were found."),)


@pytest.mark.parametrize("item", [CALL | {"execution": "server", "call_id": None}, FOUND])
def test_items_that_a_host_made_are_kept_and_listed(item: dict[str, Any]) -> None:
    call = decode(tools=[SEARCH], input=[ASKED, item | {"execution": "server"}])
    assert names(call) == ["tool_search"]
    assert call.ignored == (f"input[].{item['type']}",)


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([ASKED, CALL | {"call_id": None}], "input[1].call_id"),
        ([ASKED, FOUND], "input[1].call_id"),
        ([ASKED, CALL, FOUND | {"tools": 1}], "input[2].tools"),
        ([ASKED, CALL, FOUND | {"tools": [{"name": "a"}]}], "input[2].tools[0].type"),
    ],
)
def test_what_is_no_search_is_refused(items: list[Any], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        decode(tools=[SEARCH], input=items)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "items", [[{"type": "additional_tools", "role": "developer", "tools": [PORT]}, ASKED]]
)
def test_what_an_earlier_request_brought_is_offered_again(items: list[Any]) -> None:
    first = decode(input=items)
    reply = CODEC.reply(first, STAMP)
    for event in events(QUERY):
        reply.push(event)
    assert isinstance(reply, KeptReply)
    stored = reply.stored()
    call = decode(previous_response_id=stored.id, tools=[TOOL | {"name": "own"}])
    assert names(call) == ["own"]
    again = call.resolve({Need("response", stored.id): stored})
    assert isinstance(again, ResponsesCall)
    assert names(again) == ["own", "port__tide"]
    assert again.namespaces == {"port__tide": ("port", "tide")}
    assert isinstance(stored, StoredAnswer)
