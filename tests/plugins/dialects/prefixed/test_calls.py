"""JSON calls behind each family's marker; what is no call is text."""

from __future__ import annotations

import json
import re

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.prefixed.families import FAMILIES

TOOLS = (ToolSpec("get_tide"), ToolSpec("lamp"))
TIDE = call("get_tide", '{"port": "</x>"}')
LAMP = call("lamp", "{}")
ONE = '{"name": "get_tide", "arguments": {"port": "</x>"}}'
TWO = '{"name": "lamp", "arguments": {}}'
SPELLINGS = [
    ("apriel", f"Here are my reasoning steps:\nso\n[BEGIN FINAL RESPONSE]\n"
     f"<tool_calls>[{ONE}, {TWO}]</tool_calls>"),
    ("firefunction", f" functools[{ONE}, {TWO}]"),
    ("gigachat", f"<|function_call|>{ONE}<|function_call|>{TWO}"),
    ("granite", f"<think>so</think><|tool_call|>[{ONE}, {TWO}]"),
    ("granite", f"<|tool_call|> [{ONE},\n{TWO}]\n"),
    ("granite_20b", f"<function_call> {ONE}<function_call> {TWO}"),
    ("internlm", f"<|action_start|><|plugin|>\n{ONE}<|action_end|>\n"
     f"<|action_start|><|plugin|>{TWO}"),
    ("jamba", f"<think>\nso\n</think>\n<tool_calls>[\n  {ONE},\n  {TWO}\n]</tool_calls>"),
    ("longcat", f"<longcat_tool_call>\n{ONE}\n</longcat_tool_call>\n"
     f"<longcat_tool_call>{TWO}</longcat_tool_call>"),
    ("nemotron_nano_v2", f"<think>\nso\n</think>\n\n<TOOLCALL>[{ONE}, {TWO}]</TOOLCALL>\n"),
    ("phi4", f"<|tool_call|>[{ONE}, {TWO}]<|/tool_call|>"),
    ("phi4", f"functools[{ONE}, {TWO}]"),
    ("solar", "<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>get_tide<|tool_call:args|>"
     '{"port": "</x>"}<|tool_call:end|><|tool_call:begin|>a2<|tool_call:name|>lamp'
     "<|tool_call:args|>{}<|tool_call:end|><|calls|>"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "said"), SPELLINGS)
def test_calls_are_read(name: str, said: str) -> None:
    found = read(said, maker=FAMILIES[name].maker("auto"), tools=TOOLS)
    calls = [(part.name, part.text, part.complete) for part in found if part.kind == "tool_call"]
    assert calls == [(part.name, part.text, True) for part in (TIDE, LAMP)]
    rest = [part for part in found if part.kind != "tool_call" and part.text.strip()]
    assert rest == ([reasoning("so")] if "so" in said else [])


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_no_call_is_text_and_what_is_cut_off_is_not_complete(name: str) -> None:
    family = FAMILIES[name]
    marker = family.format.calls[0].marker
    maker = family.maker("auto")
    said = f"a {marker} b"
    assert read(said, maker=maker, tools=TOOLS) == [text(said)]
    if name == "solar":
        return
    cut = call("get_tide", '{"port": "<', complete=False)
    assert read(marker + ONE[: ONE.index("/")], maker=maker, tools=TOOLS) == [cut]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_grammar_spells_what_is_read(name: str) -> None:
    maker = FAMILIES[name].maker("auto")
    grammar = maker.call_grammar(TOOLS[:1])
    [spelling] = grammar.calls
    chosen = "c1<|tool_call:name|>get_tide<|tool_call:args|>" if name == "solar" else ""
    assert re.fullmatch(spelling.before, chosen)
    said = f'{grammar.begin}{spelling.begin}{chosen}{{"port": "x"}}{spelling.end}{grammar.end}'
    assert said.startswith(grammar.trigger)
    [found] = read(said, maker=maker, tools=TOOLS)
    assert (found.name, json.loads(found.text)) == ("get_tide", {"port": "x"})


def test_solar_frames_are_no_text() -> None:
    maker = FAMILIES["solar"].maker("auto")
    special = ("<|think|>", "<|end|>", "<|begin|>", "<|content|>")
    think, end, begin, content = special
    pieces = (think, "so", end, begin, "assistant", content, "Well.", end)
    found = [reasoning("so"), text("Well.")]
    assert read(*pieces, maker=maker, tools=TOOLS, special=special) == found
    assert read("".join(pieces), maker=maker, tools=TOOLS) == found


def test_granite_answers_stand_in_response_tags() -> None:
    said = "<think>so</think><response>Well.</response>"
    maker = FAMILIES["granite"].maker("auto")
    assert read(said, maker=maker, tools=TOOLS) == [reasoning("so"), text("Well.")]


def test_an_apriel_prompt_opens_the_reasoning() -> None:
    maker = FAMILIES["apriel"].maker("auto")
    assert maker.phase("<|begin_assistant|>\nHere are my reasoning steps:\n") == "reasoning"
    said = "so\n[BEGIN FINAL RESPONSE]\nWell.\n[END FINAL RESPONSE]"
    found = read(said, maker=maker, tools=TOOLS, phase="reasoning")
    assert [(part.kind, part.text.strip()) for part in found] == [
        ("reasoning", "so"),
        ("text", "Well."),
    ]
