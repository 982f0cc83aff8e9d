"""What Cohere models write beside what their templates show."""

from __future__ import annotations

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.fold import Part
from tokenwire.plugins.dialects.cohere.maker import cohere_maker, command_r_maker

COHERE, COMMAND_R = cohere_maker(), command_r_maker()
LIST = (
    '<|START_ACTION|>[\n    {"tool_call_id": "3", "tool_name": "f", "parameters": {"a": 1}},\n'
    '    {"tool_call_id": "4", "tool_name": "g", "parameters": {}}\n]<|END_ACTION|>'
)
CALLS = [
    Part("tool_call", '{"a": 1}', name="f", call_id="3"),
    Part("tool_call", "{}", name="g", call_id="4"),
]


def test_calls_bring_the_ids_that_the_model_wrote() -> None:
    parts = read("<|START_THINKING|>I will look.<|END_THINKING|>", LIST, maker=COHERE)
    assert parts == [reasoning("I will look."), *CALLS]


def test_a_response_keeps_its_space_and_its_citations() -> None:
    said = "\n <co>Low</co: 0:[1,2]> tide.\n"
    parts = read(f"<|START_RESPONSE|>{said}<|END_RESPONSE|>", maker=COHERE)
    assert parts == [text(said)]


def test_a_prompt_that_opened_thinking_begins_in_it() -> None:
    assert COHERE.phase("<|CHATBOT_TOKEN|><|START_THINKING|>") == "reasoning"
    assert COHERE.phase("<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>") == "content"
    said = "plan<|END_THINKING|><|START_TEXT|>Low.<|END_TEXT|>"
    assert read(said, maker=COHERE, phase="reasoning") == [reasoning("plan"), text("Low.")]


def test_thinking_that_is_not_closed_ends_where_an_answer_or_a_call_begins() -> None:
    said = "plan<|START_RESPONSE|>Low.<|END_RESPONSE|>"
    assert read(said, maker=COHERE, phase="reasoning") == [reasoning("plan"), text("Low.")]
    assert read("plan", LIST, maker=COHERE, phase="reasoning") == [reasoning("plan"), *CALLS]


def test_an_answer_in_json_is_no_call() -> None:
    said = '[{"tool_name": "f", "parameters": {}}]'
    assert read(said, maker=COHERE) == [text(said)]


def test_markers_may_be_special_tokens() -> None:
    special = ("<|START_ACTION|>", "<|END_ACTION|>", "<|START_TEXT|>", "<|END_TEXT|>")
    pieces = (special[0], LIST.removeprefix(special[0]).removesuffix(special[1]), special[1])
    assert read(*pieces, maker=COHERE, special=special) == CALLS
    assert read(special[2], "a ", "b", special[3], maker=COHERE, special=special) == [text("a b")]


def test_command_r_writes_its_actions_in_a_fence() -> None:
    body = (
        '[\n    {\n        "tool_name": "f",\n        "parameters": {\n  "a": 1\n}\n    }\n]```\n'
    )
    for between in ("\n", " ", ""):
        parts = read(f"Plan.\nAction:{between}```json\n{body}", maker=COMMAND_R)
        assert parts == [text("Plan."), call("f", '{\n  "a": 1\n}')]


def test_a_fence_that_is_no_action_is_text() -> None:
    said = "Action: none\n```json\n[]\n```\n"
    assert read(said, maker=COMMAND_R) == [text(said)]
