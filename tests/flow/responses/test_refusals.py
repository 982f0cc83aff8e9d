"""What is refused, and what is not read and listed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flow.responses.asking import PATH, post
from tokenwire.core.testing.client import LocalClient


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_nobody"}, "previous_response_id"),
        ({"conversation": "conv_nobody"}, "conversation"),
        ({"conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
        ({"input": [{"type": "item_reference", "id": "msg_nobody"}]}, "input[0].id"),
        ({"background": True, "store": False}, "background"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"metadata": {"k": "v" * 513}}, "metadata"),
        ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
            "input[0].call_id",
        ),
    ],
)
def test_what_is_not_there_or_not_meant_is_refused(
    client: LocalClient, fields: dict[str, Any], param: str
) -> None:
    response = post(client, **fields)
    error: Any = response.json()
    assert response.status == 400
    assert error["error"]["param"] == param
    assert error["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("fields", "listed"),
    [
        (
            {"input": [{"type": "reasoning", "summary": [{"text": "x", "odd": 1}]}]},
            "input[].summary[].odd",
        ),
        (
            {"input": [{"type": "reasoning", "content": [{"text": "x", "odd": 1}]}]},
            "input[].content[].odd",
        ),
        ({"text": {"format": {"type": "text", "odd": 1}}}, "text.format.odd"),
        ({"tool_choice": {"type": "function", "name": "f", "odd": 1}}, "tool_choice.odd"),
        (
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
                }
            },
            "tool_choice.tools[]",
        ),
        (
            {
                "tools": [
                    {
                        "type": "custom",
                        "name": "g",
                        "format": {
                            "type": "grammar",
                            "syntax": "regex",
                            "definition": "a",
                            "odd": 1,
                        },
                    }
                ]
            },
            "tools[].format.odd",
        ),
    ],
)
def test_what_nobody_reads_is_listed_however_deep(
    client: LocalClient, fields: dict[str, Any], listed: str
) -> None:
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    response = post(client, **{"tools": tools, **fields})
    assert response.status == 200, response.body
    assert listed in response.headers["x-tokenwire-ignored"].split(", ")


def test_compaction_is_refused_in_words(client: LocalClient) -> None:
    response = client.post(f"{PATH}/compact", {"model": "plain"})
    told: Any = response.json()
    assert response.status == 400
    assert "truncation" in told["error"]["message"]
