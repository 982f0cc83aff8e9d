"""Calls written as Python, bare and between markers."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.pythonic.families import FAMILIES

TOOLS = (ToolSpec("get_tide", None, '{"properties": {"port": {}, "day": {}}}'), ToolSpec("lamp"))
PYTHONIC, LFM2, OLMO3 = (FAMILIES[name].maker("auto") for name in ("pythonic", "lfm2", "olmo3"))
TIDE = call("get_tide", '{"port": "Faro"}')
LAMP = call("lamp", '{"on": true}')


def test_a_bare_list_of_known_names_is_calls() -> None:
    said = '[get_tide("Faro"), lamp(on=True)]'
    assert read(said, maker=PYTHONIC, tools=TOOLS) == [TIDE, LAMP]
    assert read(f"<think>\nso\n</think>\n\n{said}\n", maker=PYTHONIC, tools=TOOLS) == [
        reasoning("so"), TIDE, LAMP,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "[",
        "[1, 2]",
        "[link](https://x)",
        "[storm(day=1)]",
        "[lamp]",
        "[get_tide(port)]",
        "Say [lamp()]",
    ],
)
def test_other_bare_text_stays_as_it_is(said: str) -> None:
    assert read(said, maker=PYTHONIC, tools=TOOLS) == [text(said)]


def test_lfm2_calls_stand_between_markers() -> None:
    said = "Well.<|tool_call_start|>[get_tide(port='Faro'), lamp(on=True)]<|tool_call_end|>Done."
    found = [text("Well."), TIDE, LAMP, text("Done.")]
    assert read(said, maker=LFM2, tools=TOOLS) == found
    json_call = '{"name": "get_tide", "arguments": {"port": "Faro"}}'
    said = f"<|tool_call_start|>[{json_call}]<|tool_call_end|>"
    assert read(said, maker=LFM2, tools=TOOLS) == [TIDE]


def test_lfm2_markers_are_special_tokens() -> None:
    special = ("<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>")
    begin, end, stop = special
    pieces = (begin, "[get_tide(port='Fa", "ro')", "]", end, stop)
    assert read(*pieces, maker=LFM2, tools=TOOLS, special=special) == [TIDE]


def test_lfm2_strings_hold_quotes_that_nobody_escaped() -> None:
    said = "<|tool_call_start|>[get_tide(port='it's')]<|tool_call_end|>"
    assert read(said, maker=LFM2, tools=TOOLS) == [call("get_tide", '{"port": "it\'s"}')]


def test_olmo_3_calls_stand_in_lines() -> None:
    said = 'Well.\n<function_calls>get_tide(port="Faro")\nlamp(on=True)</function_calls>'
    assert read(said, maker=OLMO3, tools=TOOLS) == [text("Well."), TIDE, LAMP]


def test_a_call_that_is_cut_off_or_broken_is_not_complete() -> None:
    said = "<function_calls>get_tide(port='Fa"
    cut = call("get_tide", '{"port": "Fa', complete=False)
    assert read(said, maker=OLMO3, tools=TOOLS) == [cut]
    said = "<function_calls>get_tide(port='Fa', day=1</function_calls>"
    cut = call("get_tide", '{"port": "Fa", "day": 1', complete=False)
    assert read(said, maker=OLMO3, tools=TOOLS)[0] == cut


def test_what_is_no_call_between_markers_is_text() -> None:
    said = "<|tool_call_start|>no call<|tool_call_end|>"
    assert read(said, maker=LFM2, tools=TOOLS) == [text(said)]
