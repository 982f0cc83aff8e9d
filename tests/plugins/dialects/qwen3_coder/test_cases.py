"""Reported failures of this wire shape, and what models do with its tags."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tests.shared_files import shared
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.qwen3_coder.families import FAMILIES

SCHEMA = '{"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}'
TOOLS = (ToolSpec("f", None, SCHEMA), ToolSpec("g", None, SCHEMA))
F = "<function=f>\n<parameter=a>\nx\n</parameter>\n</function>"
X = call("f", '{"a": "x"}')


def parsed(*pieces: str, family: str = "qwen3_coder", **setup):
    given = {"tools": TOOLS, **setup}
    return read(*pieces, maker=FAMILIES[family].maker("auto"), **given)


def cases() -> list[dict]:
    path = shared("cases") / "codec_cases.jsonl"
    if not path.is_file():
        return []
    # Why not splitlines: the cases hold other line separators.
    lines = map(json.loads, filter(None, path.read_text(encoding="utf-8").split("\n")))
    return [c for c in lines if c.get("model_output", {}).get("format") == "qwen3_coder"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_a_reported_case_holds(case: dict) -> None:
    tools = tuple(
        ToolSpec(tool["function"]["name"], None, json.dumps(tool["function"]["parameters"]))
        for tool in case["input"]["tools"]
    )
    parts = parsed(*case["model_output"]["pieces"], tools=tools)
    wanted = case.get("expect", {}).get("tool_calls")
    if wanted is None:
        wanted = [{"name": "set_lamp", "arguments_json": {"room": "hall", "level": ""}}]
    assert [(p.name, json.loads(p.text)) for p in parts] == [
        (call["name"], call["arguments_json"]) for call in wanted
    ]
    assert all(part.complete for part in parts)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (f"<tool_call>\n{F}\n</tool_call>", [X]),
        (f"<tool_call>{F}</tool_call>\n<tool_call>{F}</tool_call>", [X, X]),
        # Two calls in one tag, and tags that are missing.
        (f"<tool_call>\n{F}\n{F}\n</tool_call>", [X, X]),
        (f"I look.\n\n{F}\n</tool_call>", [text("I look."), X]),
        (F, [X]),
        (f"<tool_call>\n{F}", [X]),
        (f"{F}\nSo.", [X, text("So.")]),
        # A tool that nobody has: in its tag it is a call, alone it is text.
        ("<tool_call>\n<function=h>\n</function>\n</tool_call>", [call("h", "{}")]),
        ("<function=h>\n</function>", [text("<function=h>\n</function>")]),
        ("Write <function=NAME> here.", [text("Write <function=NAME> here.")]),
        ("The tag <tool_call> opens one.", [text("The tag <tool_call> opens one.")]),
        ("<think>\nhm\n</think>\n\n" + F, [reasoning("hm"), X]),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx", [call("f", '{"a": "x', complete=False)]),
    ],
)
def test_tags_are_read_as_models_write_them(answer: str, wanted: list) -> None:
    assert parsed(answer) == wanted


def test_special_tokens_are_the_tags_they_spell() -> None:
    pieces = ("<tool_call>", "\n", F, "\n", "</tool_call>")
    assert parsed(*pieces, special=("<tool_call>", "</tool_call>")) == [X]


def test_other_special_tokens_inside_a_value_are_dropped() -> None:
    begin = "<tool_call>\n<function=f>\n<parameter=a>\nx\n</para"
    pieces = (begin, "<|x|>", "y\n</parameter>\n</function>")
    assert parsed(*pieces, special=("<|x|>",)) == [call("f", '{"a": "x\\n</paray"}')]


def test_without_tools_or_with_none_chosen_everything_is_text() -> None:
    assert parsed(F, parse_tools=False) == [text(F)]


def test_a_call_in_closed_reasoning_is_a_draft() -> None:
    whole = f"<think>\nI try\n<tool_call>\n{F}\n</tool_call>\nbut no\n</think>\n\nNo."
    thought, said = parsed(whole)
    assert thought.kind == "reasoning"
    assert F in thought.text
    assert said == text("No.")


def test_a_call_grammar_is_offered_for_each_tool() -> None:
    for family in ("qwen3_coder", "seed_oss"):
        grammar = FAMILIES[family].maker("auto").call_grammar(TOOLS)
        assert grammar is not None
        assert [spelling.tool for spelling in grammar.calls] == ["f", "g"]
        for spelling in grammar.calls:
            assert spelling.begin.startswith(grammar.trigger)
            inner = "<parameter=a>x</parameter>"
            wanted = [call(spelling.tool, '{"a": "x"}')]
            assert parsed(spelling.begin + inner + spelling.end, family=family) == wanted
