"""Each output through all protocols, in every cutting and mode, unary and streamed."""

from __future__ import annotations

import json

import pytest

from tests.cases.convert import to_messages, to_responses
from tests.cases.history import as_messages, history
from tests.cases.outputs import OUTPUTS, Output
from tests.cases.stage import CHAT, MESSAGES, RESPONSES, Stage

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
    asked = {**case.asked, "messages": [*case.asked["messages"], *history(first.message)]}
    for path, body in (
        (CHAT, asked),
        (MESSAGES, as_messages(asked)),
        (RESPONSES, to_responses(asked)),
    ):
        if body is None:
            continue  # Of a stop string: Responses has none.
        second = stage.play(path, body)
        assert second.status == 200
        before = stage.prompt(first.response).text.removesuffix(case.told.get("prompt_tail", ""))
        assert stage.prompt(second.response).text.startswith(before)
