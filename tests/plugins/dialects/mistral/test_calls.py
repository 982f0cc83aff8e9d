"""Mistral's calls in their spellings, broken ones, and its reasoning."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.mistral.families import FAMILIES

TOOLS = (ToolSpec("get_tide"), ToolSpec("lamp.v2"))
MISTRAL, WITH_LISTS = (FAMILIES[name].maker("auto") for name in ("mistral", "mistral_json"))
TIDE = call("get_tide", '{"port": "Faro"}')


@pytest.mark.parametrize(
    "said",
    [
        '[TOOL_CALLS]get_tide[ARGS]{"port": "Faro"}',
        '[TOOL_CALLS] get_tide {"port": "Faro"}',
        '[TOOL_CALLS]get_tide{"port": "Faro"}',
        '[TOOL_CALLS][{"name": "get_tide", "arguments": {"port": "Faro"}}]',
        '[TOOL_CALLS] [ {"arguments": {"port": "Faro"}, "name": "get_tide"}]',
        '[TOOL_CALLS]{"name": "get_tide", "arguments": {"port": "Faro"}}',
    ],
)
def test_a_call_is_read_in_each_of_its_spellings(said: str) -> None:
    assert read(said, maker=MISTRAL, tools=TOOLS) == [TIDE]


def test_a_call_brings_the_id_that_the_model_gave_it() -> None:
    said = '[TOOL_CALLS]get_tide[CALL_ID]abcdefgh1[ARGS]{"port": "Faro"}'
    [found] = read(said, maker=MISTRAL, tools=TOOLS)
    assert (found.name, found.call_id, found.text) == ("get_tide", "abcdefgh1", TIDE.text)


def test_calls_follow_text_reasoning_and_each_other() -> None:
    said = "[THINK]so\n[/THINK]Well\n[TOOL_CALLS]get_tide[ARGS]{}[TOOL_CALLS]lamp.v2[ARGS]{}"
    found = [reasoning("so\n"), text("Well\n"), call("get_tide", "{}"), call("lamp.v2", "{}")]
    assert read(said, maker=MISTRAL, tools=TOOLS) == found


def test_markers_in_strings_are_data() -> None:
    said = '[TOOL_CALLS]get_tide[ARGS]{"port": "[TOOL_CALLS]x[ARGS]{}]"} and'
    found = [call("get_tide", '{"port": "[TOOL_CALLS]x[ARGS]{}]"}'), text("and")]
    assert [(p.kind, p.text.strip()) for p in read(said, maker=MISTRAL, tools=TOOLS)] == [
        (p.kind, p.text) for p in found
    ]


@pytest.mark.parametrize(
    "said",
    [
        "[TOOL_CALLS] and then {",
        "[TOOL_CALLS][]",
        "[TOOL_CALLS]{}",
        '[TOOL_CALLS][ARGS]{"port": 1}',
        "[TOOL_CALLS]" + "x" * 1100 + "{}",
        "[TOOL_CALL] or [TOOL_CALLS",
    ],
)
def test_what_is_no_call_is_text(said: str) -> None:
    assert read(said, maker=MISTRAL, tools=TOOLS) == [text(said)]


def test_a_call_that_is_cut_off_is_not_complete() -> None:
    said = '[TOOL_CALLS]get_tide[ARGS]{"port": "Fa'
    cut = call("get_tide", '{"port": "Fa', complete=False)
    assert read(said, maker=MISTRAL, tools=TOOLS) == [cut]
    broken = '[TOOL_CALLS]get_tide[ARGS]{"port": <b>'
    cut = call("get_tide", '{"port": ', complete=False)
    assert read(broken, maker=MISTRAL, tools=TOOLS) == [cut, text("<b>")]


def test_its_markers_are_special_tokens() -> None:
    special = ("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "</s>")
    begin, by, behind, end = special
    pieces = (begin, "get_", "tide", by, "abc", behind, '{"port": "Faro"}', end)
    [found] = read(*pieces, maker=MISTRAL, tools=TOOLS, special=special)
    assert (found.name, found.call_id, found.text) == ("get_tide", "abc", TIDE.text)


def test_the_grammar_spells_what_is_read() -> None:
    for maker, separator in ((MISTRAL, ""), (WITH_LISTS, ", ")):
        grammar = maker.call_grammar(TOOLS)
        spelled = [f'{c.begin}{{"port": "Faro"}}{c.end}' for c in grammar.calls]
        said = grammar.begin + separator.join(spelled) + grammar.end
        assert said.startswith(grammar.trigger)
        found = read(said, maker=maker, tools=TOOLS)
        assert found == [call(tool.name, '{"port": "Faro"}') for tool in TOOLS]
