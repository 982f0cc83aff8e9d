"""Bare JSON is a call where it names one of the tools; else it is text, to the letter."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.reading import call, read, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.llama.families import FAMILIES

TOOLS = (ToolSpec("get_tide"), ToolSpec("brave_search"))
LLAMA3, LLAMA4, ARRAY = (
    FAMILIES[name].maker("auto") for name in ("llama3_json", "llama4", "json_array")
)
TIDE = call("get_tide", '{"port": "Faro"}')


def test_the_reported_calls_are_read() -> None:
    pieces = ('{"name": "get_tide", ', '"parameters": {"port": ', '"Faro"}}')
    assert read(*pieces, maker=LLAMA3, tools=TOOLS) == [TIDE]
    pieces = ('[{"name": "get_ti', 'de", "parameters": {"port": "Faro"}}', "]")
    assert read(*pieces, maker=ARRAY, tools=TOOLS) == [TIDE]


@pytest.mark.parametrize(
    "said",
    [
        '{"name": "get_tide", "arguments": {"port": "Faro"}}',
        '\n {"type": "function", "name": "get_tide", "parameters": {"port": "Faro"}}\n',
        '{"parameters": {"port": "Faro"}, "name": "get_tide"}',
        '<|python_tag|>{"name": "get_tide", "parameters": {"port": "Faro"}}',
        '<|python_tag|>get_tide.call(port="Faro")',
    ],
)
def test_a_call_is_read_in_each_of_its_spellings(said: str) -> None:
    assert read(said, maker=LLAMA3, tools=TOOLS) == [TIDE]


@pytest.mark.parametrize("between", ["; ", "\n", "", " ;\n", ", "])
def test_several_calls_are_read(between: str) -> None:
    one = '{"name": "get_tide", "parameters": {"port": "Faro"}}'
    assert read(one + between + one, maker=LLAMA3, tools=TOOLS) == [TIDE, TIDE]
    tagged = f"<|python_tag|>{one}{between}<|python_tag|>{one}"
    assert read(tagged, maker=LLAMA3, tools=TOOLS) == [TIDE, TIDE]


@pytest.mark.parametrize(
    "said",
    [
        "{",
        "{}",
        "[]",
        "[1, 2]",
        '{"a": 1}',
        '{"name": "Anna", "age": 3}',
        '{"name": 7, "parameters": {}}',
        '{"type": "object", "properties": {"name": {}}}',
        '{"name": "get_ti',
        '{ "name" : "get_tides", "parameters": {}}\n',
        '[{"name": "get_tides", "arguments": {}}]',
        '{"parameters": {"port": "Faro"}}',
        "{not JSON}",
        'Use {"name": "get_tide", "parameters": {}}.',
        '```json\n{"name": "get_tide", "parameters": {}}\n```',
        "[get_tides(a=1)]",
        "[see](https://example.org)",
    ],
)
@pytest.mark.parametrize("maker", [LLAMA3, LLAMA4, ARRAY])
def test_other_json_is_text_to_the_letter(maker, said: str) -> None:
    assert read(said, maker=maker, tools=TOOLS) == [text(said)]


def test_without_tools_everything_is_text() -> None:
    said = '{"name": "get_tide", "parameters": {"port": "Faro"}}'
    assert read(said, maker=LLAMA3, tools=TOOLS, parse_tools=False) == [text(said)]
    assert read(said, maker=LLAMA3) == [text(said)]


def test_json_that_is_no_call_is_held_back_up_to_its_first_key_only() -> None:
    parser = LLAMA3.parser(ParserSetup(tools=TOOLS))
    assert not parser.push(Piece('{"result"'[:-1]))
    events = parser.push(Piece('"'))
    assert [event.text for event in events if hasattr(event, "text")] == ['{"result"']


def test_code_behind_the_tag_is_text() -> None:
    said = "<|python_tag|>import math\nprint(1)"
    assert read(said, maker=LLAMA3, tools=TOOLS) == [text(said)]


@pytest.mark.parametrize(
    "said",
    [
        '<|python_start|>[get_tide(port="Faro")]<|python_end|>',
        '[get_tide(port="Faro")]',
        '[{"name": "get_tide", "parameters": {"port": "Faro"}}]',
        '<|python_start|>{"name": "get_tide", "parameters": {"port": "Faro"}}<|python_end|>',
    ],
)
def test_llama_4_writes_python_or_json(said: str) -> None:
    assert read(said, maker=LLAMA4, tools=TOOLS) == [TIDE]


def test_a_call_that_is_cut_off_is_not_complete() -> None:
    said = '{"name": "get_tide", "parameters": {"port": "Fa'
    cut = call("get_tide", '{"port": "Fa', complete=False)
    assert read(said, maker=LLAMA3, tools=TOOLS) == [cut]


def test_special_tokens_of_the_frame_are_no_text() -> None:
    said = '{"name": "get_tide", "parameters": {"port": "Faro"}}'
    pieces = ("<|python_tag|>", said, "<|eom_id|>")
    found = read(*pieces, maker=LLAMA3, tools=TOOLS, special=(pieces[0], pieces[2]))
    assert found == [TIDE]


def test_the_grammar_spells_what_is_read() -> None:
    for maker, separator in ((LLAMA3, "; "), (LLAMA4, "; "), (ARRAY, ", ")):
        grammar = maker.call_grammar(TOOLS)
        spelled = [f'{c.begin}{{"port": "Faro"}}{c.end}' for c in grammar.calls]
        said = grammar.begin + separator.join(spelled) + grammar.end
        assert said.startswith(grammar.trigger)
        found = read(said, maker=maker, tools=TOOLS)
        assert [part.name for part in found] == [tool.name for tool in TOOLS]
        assert all(json.loads(part.text) == {"port": "Faro"} for part in found)
