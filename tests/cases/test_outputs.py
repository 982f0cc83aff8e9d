"""Each output through all protocols, in every cutting and mode, unary and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.message import Message
from tests.cases.outputs import OUTPUTS, Output
from tests.cases.stage import CHAT, MESSAGES, RESPONSES, Stage, to_messages, to_responses

FINISHES = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
BOTH = [case for case in OUTPUTS if "messages" in case.protocols]
EACH = pytest.mark.parametrize("case", OUTPUTS, ids=lambda case: case.name)
EACH_OF_BOTH = pytest.mark.parametrize("case", BOTH, ids=lambda case: case.name)


@EACH
def test_chat_completions(stage: Stage, case: Output) -> None:
    message = stage.play_all(CHAT, case.asked, case.told).message
    assert (message.content or None) == (case.content or None)
    assert message.reasoning == case.reasoning
    assert [(call.name, call.arguments) for call in message.calls] == list(case.calls)
    assert message.finish == case.finish


@EACH_OF_BOTH
def test_messages(stage: Stage, case: Output) -> None:
    asked = to_messages(case.asked)
    assert asked is not None
    message = stage.play_all(MESSAGES, asked, case.told).message
    assert (message.content or None) == (case.content or None)
    assert message.reasoning == case.reasoning
    assert message.stop_sequence == case.matched
    assert message.finish == ("stop_sequence" if case.matched else FINISHES[case.finish])
    if case.finish != "length":
        assert [(call.name, json.loads(call.arguments)) for call in message.calls] == [
            (name, json.loads(arguments)) for name, arguments in case.calls
        ]


@EACH
def test_responses(stage: Stage, case: Output) -> None:
    asked = to_responses(case.asked)
    if asked is None:
        assert case.matched or set(case.asked) - {"model", "messages", "tools"}
        return
    message = stage.play_all(RESPONSES, asked, case.told).message
    assert (message.content or None) == (case.content or None)
    assert message.reasoning == case.reasoning
    assert [(call.name, call.arguments) for call in message.calls] == list(case.calls)
    assert message.finish == ("incomplete" if case.finish == "length" else "completed")


@EACH_OF_BOTH
def test_the_answer_is_taken_back_as_history_by_both(stage: Stage, case: Output) -> None:
    """The prompt of the question stays the beginning of the next one."""
    first = stage.play(CHAT, case.asked, case.told)
    asked = {**case.asked, "messages": [*case.asked["messages"], *_history(first.message)]}
    for path, body in (
        (CHAT, asked),
        (MESSAGES, _as_messages(asked)),
        (RESPONSES, to_responses(asked)),
    ):
        if body is None:
            continue  # Of a stop string: Responses has none.
        second = stage.play(path, body)
        assert second.status == 200
        before = stage.prompt(first.response).text.removesuffix(case.told.get("prompt_tail", ""))
        assert stage.prompt(second.response).text.startswith(before)


def _history(message: Message) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.reasoning:
        said["reasoning_content"] = message.reasoning
    if not message.calls:
        return [said, {"role": "user", "content": "And now?"}]
    said["tool_calls"] = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(message.calls)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"call_{index}", "content": "done"}
        for index in range(len(message.calls))
    ]
    return [said, *results]


def _as_messages(body: dict[str, Any]) -> dict[str, Any]:
    asked = to_messages(body)
    assert asked is not None
    asked["messages"] = [_turn(message) for message in body["messages"]]
    return asked


def _turn(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": "done"}
        return {"role": "user", "content": [block]}
    blocks: list[dict[str, Any]] = []
    if thought := message.get("reasoning_content"):
        blocks.append({"type": "thinking", "thinking": thought, "signature": "from elsewhere"})
    if text := message.get("content"):
        blocks.append({"type": "text", "text": text})
    for call in message.get("tool_calls", ()):
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            arguments = {}
        blocks.append(
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": arguments,
            }
        )
    return {"role": message["role"], "content": blocks}
