"""What of a request comes into the prompt: sealed reasoning, custom tools, the newest items."""

from __future__ import annotations

from typing import Any

from tests.flow.responses.asking import PATH, ask, events, post, prompt
from tokenwire.core.testing.client import LocalClient


def test_sealed_reasoning_comes_back_into_the_prompt(client: LocalClient) -> None:
    fields = {"model": "hermes+think", "include": ["reasoning.encrypted_content"], "store": False}
    made = ask(client, "think", **fields)
    thought = made["output"][0]
    del thought["content"]
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    items = [{"role": "user", "content": "q"}, thought, call, result]
    response = post(client, model="hermes+think", input=items)
    assert "<think>\nso\n</think>" in prompt(client, response)
    thought["encrypted_content"] = thought["encrypted_content"][:-8] + "AAAAAAA="
    response = post(client, model="hermes+think", input=items)
    assert "<think>\nso" not in prompt(client, response)
    assert response.headers["x-tokenwire-ignored"] == "input[].encrypted_content"


def test_a_custom_tool_is_called_in_plain_text(client: LocalClient) -> None:
    tool = {"type": "custom", "name": "patch", "description": "Edits."}
    streamed = events(
        post(client, "patch", model="hermes+think", tools=[tool], stream=True, input="fix")
    )
    deltas = [
        event["delta"]
        for event in streamed
        if event["type"] == "response.custom_tool_call_input.delta"
    ]
    call = streamed[-1]["response"]["output"][0]
    assert "".join(deltas) == call["input"] == 'a\n"b"'
    assert len(deltas) > 1
    items = [
        {"role": "user", "content": "fix"},
        call,
        {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "done"},
    ]
    response = post(client, model="hermes+think", tools=[tool], input=items)
    text = prompt(client, response)
    assert '"input": {"type": "string"}' in text or '"input":{"type":"string"}' in text
    assert "done" in text


def test_the_oldest_items_are_left_out_where_that_is_asked_for(client: LocalClient) -> None:
    items = [
        {"role": role, "content": f"{word} " * 40}
        for role, word in zip(
            ("user", "assistant") * 3 + ("user",), ("a", "b", "c", "d", "e", "f", "g"), strict=True
        )
    ]
    assert post(client, input=items, max_output_tokens=9).status == 400
    response = post(client, input=items, max_output_tokens=9, truncation="auto")
    assert response.status == 200
    text = prompt(client, response)
    assert "a a" not in text
    assert "g g" in text
    assert response.headers["x-tokenwire-ignored"].startswith("input[:")
    counted: Any = client.post(
        f"{PATH}/input_tokens", {"model": "plain", "input": items, "truncation": "auto"}
    ).json()
    assert counted["object"] == "response.input_tokens"
    assert counted["input_tokens"] < 600


def test_counting_is_what_a_call_takes(client: LocalClient) -> None:
    first = ask(client)
    fields = {"input": "more", "previous_response_id": first["id"], "instructions": "Be brief."}
    counted: Any = client.post(f"{PATH}/input_tokens", {"model": "plain", **fields}).json()
    assert counted["input_tokens"] == ask(client, **fields)["usage"]["input_tokens"]
