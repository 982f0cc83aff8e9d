"""Forced calls and shaped answers, from a client's request to the answer of an engine that keeps to
them; and what is said where an engine cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flow.spy import SpyEngine
from tests.flow.wired import PATHS, model, serving
from tokenwire.core.testing.client import LocalClient, Response

USER = {"role": "user", "content": "hi"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def chat_tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA, **more}}


CHAT = {"model": "m", "messages": [USER], "tools": [chat_tool("f"), chat_tool("g")]}
MESSAGES = {
    "model": "m",
    "max_tokens": 200,
    "messages": [USER],
    "tools": [{"name": name, "input_schema": SCHEMA} for name in ("f", "g")],
}
LISTED = "x-tokenwire-ignored"


def chat(client: LocalClient, **more: Any) -> tuple[dict[str, Any], Response]:
    response = client.post(PATHS["chat_completions"], CHAT | more)
    assert response.status == 200, response.body
    return json.loads(response.body)["choices"][0], response


def called(choice: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = choice["message"].get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def shape(spied: SpyEngine) -> Any:
    """Of the last job's structural tag."""
    constraint = spied.jobs[-1].constraint
    assert constraint is not None
    assert constraint.kind == "structural_tag"
    return json.loads(constraint.text)["format"]


FORCED = [
    ("required", "f"),
    ({"type": "function", "function": {"name": "g"}}, "g"),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "g"}}],
            },
        },
        "g",
    ),
]


@pytest.mark.parametrize(("choice", "name"), FORCED)
@pytest.mark.parametrize("parallel", [True, False])
def test_a_forced_call_is_made_with_arguments_of_the_schema(
    choice: Any, name: str, parallel: bool
) -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        found, response = chat(client, tool_choice=choice, parallel_tool_calls=parallel)
        stops = shape(spied)["stop_after_first"]
    assert called(found) == [(name, {"city": "aa"})]
    assert found["finish_reason"] == "tool_calls"
    assert LISTED not in response.headers
    assert stops != parallel


@pytest.mark.parametrize(
    ("choice", "name"), [({"type": "any"}, "f"), ({"type": "tool", "name": "g"}, "g")]
)
def test_messages_forces_calls_too(choice: dict[str, Any], name: str) -> None:
    with serving(model(dialect="hermes")) as (client, _):
        response = client.post(PATHS["messages"], MESSAGES | {"tool_choice": choice})
    body = json.loads(response.body)
    assert [block["type"] for block in body["content"]] == ["tool_use"]
    assert (body["content"][0]["name"], body["content"][0]["input"]) == (name, {"city": "aa"})
    assert body["stop_reason"] == "tool_use"


FORMATS = [
    ({"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}, {"city": "aa"}),
    ({"type": "json_object"}, {}),
]


@pytest.mark.parametrize(("wanted", "value"), FORMATS)
@pytest.mark.parametrize("tools", [[], CHAT["tools"]])
def test_an_answer_has_the_shape_that_was_asked_for(wanted: Any, value: Any, tools: Any) -> None:
    with serving(model(dialect="hermes")) as (client, _):
        found, response = chat(client, response_format=wanted, tools=tools)
    assert json.loads(found["message"]["content"]) == value
    assert LISTED not in response.headers


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"type": "choice", "choices": ["yes\nno", "no"]}, "yes\nno"),
        ({"type": "regex", "regex": "[0-9]{3}-x"}, "000-x"),
        (
            {"type": "structural_tag", "format": {"type": "const_string", "value": "so"}},
            "so",
        ),
    ],
)
@pytest.mark.parametrize("tools", [[], CHAT["tools"]])
def test_other_shapes_hold_with_and_without_tools(wanted: Any, text: str, tools: Any) -> None:
    with serving(model(dialect="hermes")) as (client, _):
        found, _ = chat(client, response_format=wanted, tools=tools)
    assert found["message"]["content"] == text


def test_strict_tools_and_allowed_sets_bind_a_free_answer() -> None:
    with serving(model(dialect="hermes")) as (client, (spied,)):
        found, _ = chat(client, tools=[chat_tool("f", strict=True), chat_tool("g")])
        strict = shape(spied)
        allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]}
        chat(client, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
        only = shape(spied)
    assert found["message"]["content"]
    assert strict["type"] == only["type"] == "triggered_tags"
    assert not strict["at_least_one"]
    schemas = [tag["content"]["json_schema"] for tag in strict["tags"]]
    assert schemas == [SCHEMA, {"type": "object"}]
    assert len(only["tags"]) == 1
    assert '"g"' in only["tags"][0]["begin"]


LAME = {"without": ["grammar:structural_tag", "grammar:json_schema"]}


@pytest.mark.parametrize(("choice", "name"), FORCED)
def test_without_a_grammar_only_the_tools_that_may_be_called_are_offered(
    choice: Any, name: str
) -> None:
    with serving(model(dialect="hermes", settings=LAME)) as (client, (spied,)):
        _, response = chat(client, tool_choice=choice)
        prompt = bytes(id for id in spied.jobs[-1].prompt if id < 256).decode()
        assert spied.jobs[-1].constraint is None
    assert response.headers[LISTED] == "tool_choice"
    assert ('"name": "f"' in prompt) == (choice == "required")
    assert '"name": "g"' in prompt


def test_without_a_grammar_shapes_and_strict_tools_are_listed() -> None:
    with serving(model(dialect="hermes", settings=LAME)) as (client, _):
        _, response = chat(
            client, response_format=FORMATS[0][0], tools=[chat_tool("f", strict=True)]
        )
    assert response.headers[LISTED] == "tools[].function.strict, response_format"


def test_a_shape_that_no_value_has_is_refused() -> None:
    with serving(model(dialect="hermes")) as (client, _):
        never = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"enum": []}}}
        response = client.post(
            PATHS["chat_completions"], {"model": "m", "messages": [USER], "response_format": never}
        )
    assert response.status == 400
