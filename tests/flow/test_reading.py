"""How answers are read is what their calls ask for: tools, reasoning, stop strings, calls one at a
time, and where the prompt left off."""

from __future__ import annotations

from typing import Any

import pytest

from tokenwire.core.config import Config, ModelConfig, PluginUse
from tokenwire.core.testing.client import LocalClient

TOOLS = [{"type": "function", "function": {"name": "look"}}]
CALL = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
SCRIPTS = {
    "calls": {"pieces": ["Well. ", CALL, "\n", CALL], "finish": "eos"},
    "think": {"pieces": ["<think>", "two", "</think>", "\n\n", "four"], "finish": "eos"},
    "open": {"pieces": ["two", "</think>", "\n\n", "four"], "prompt_tail": "<think>\n"},
    "stop": {"pieces": ["one ", "ST", "OP", " two"], "finish": "eos"},
}


@pytest.fixture(scope="module")
def client() -> Any:
    def model(name: str, dialect: str, **more: Any) -> ModelConfig:
        return ModelConfig(name, PluginUse("mock"), PluginUse("script"), dialect, **more)

    models = (
        model("m", "hermes"),
        model("silent", "hermes", reasoning="none"),
        model("other", "hermes", parser=PluginUse("plain")),
    )
    with LocalClient(Config(models=models)) as client:
        for name, body in SCRIPTS.items():
            client.script(name, body)
        yield client


def choice(client: LocalClient, script: str, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | more
    response: Any = client.post("/v1/chat/completions", body, {"x-mock-script": script}).json()
    (found,) = response["choices"]
    return dict(found, usage=response["usage"])


def test_calls_are_read_where_there_are_tools(client: LocalClient) -> None:
    found = choice(client, "calls", tools=TOOLS)
    assert len(found["message"]["tool_calls"]) == 2
    assert found["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("more", [{}, {"tools": TOOLS, "tool_choice": "none"}])
def test_otherwise_they_are_text(client: LocalClient, more: dict[str, Any]) -> None:
    found = choice(client, "calls", **more)
    assert "tool_calls" not in found["message"]
    assert CALL in found["message"]["content"]
    assert found["finish_reason"] == "stop"


def test_one_call_at_a_time_where_the_client_wants_it(client: LocalClient) -> None:
    found = choice(client, "calls", tools=TOOLS, parallel_tool_calls=False)
    assert len(found["message"]["tool_calls"]) == 1
    assert found["finish_reason"] == "tool_calls"


def test_reasoning_is_read_unless_it_is_turned_off(client: LocalClient) -> None:
    found = choice(client, "think")
    assert found["message"]["content"] == "four"
    assert found["message"]["reasoning_content"] == "two"
    assert found["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    off = choice(client, "think", reasoning_effort="none")["message"]
    assert "reasoning_content" not in off


def test_the_models_own_parser_settings_count(client: LocalClient) -> None:
    for name in ("silent", "other"):
        message = choice(client, "think", model=name)["message"]
        assert "reasoning_content" not in message
        assert "<think>two</think>" in message["content"]
    assert len(choice(client, "calls", tools=TOOLS, model="silent")["message"]["tool_calls"]) == 2
    assert "tool_calls" not in choice(client, "calls", tools=TOOLS, model="other")["message"]


def test_an_answer_starts_where_the_prompt_ends(client: LocalClient) -> None:
    message = choice(client, "open")["message"]
    assert (message["reasoning_content"], message["content"]) == ("two", "four")


@pytest.mark.parametrize(("include", "text"), [(True, "one STOP"), (False, "one ")])
def test_a_stop_string_is_left_in_where_the_client_wants_it(
    client: LocalClient, include: bool, text: str
) -> None:
    found = choice(client, "stop", stop="STOP", include_stop_str_in_output=include)
    assert found["message"]["content"] == text
    assert found["finish_reason"] == "stop"


@pytest.mark.parametrize("wanted", [True, False])
def test_log_probabilities_come_where_they_are_asked_for(client: LocalClient, wanted: bool) -> None:
    found = choice(client, "stop", logprobs=wanted)
    tokens = (found["logprobs"] or {"content": []})["content"]
    spelled = "".join(token["token"] for token in tokens)
    assert spelled == (found["message"]["content"] if wanted else "")


def test_a_script_that_is_not_there_is_said(client: LocalClient) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    response = client.post("/v1/chat/completions", body, {"x-mock-script": "nope"})
    assert response.status == 404
    assert b"/mock/scripts/nope" in response.body
