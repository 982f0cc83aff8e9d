"""What Apertus models write beside what their template shows."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.plugins.dialects.apertus.maker import apertus_maker

APERTUS = apertus_maker()
CALLS = '<|tools_prefix|>[{"f": {"a": "<|tools_suffix|>"}}, {"g": {}}]<|tools_suffix|>'
MADE = [call("f", '{"a": "<|tools_suffix|>"}'), call("g", "{}")]


def test_thoughts_text_and_calls() -> None:
    said = ("<|inner_prefix|>hm\n<|inner_suffix|>", "Let me look.", CALLS, "Done.")
    parts = read(*said, maker=APERTUS)
    assert parts == [reasoning("hm\n"), text("Let me look."), *MADE, text("Done.")]
    assert read("<|inner_prefix|>hm", CALLS, maker=APERTUS) == [reasoning("hm"), *MADE]


def test_several_tools_in_one_object_are_several_calls() -> None:
    said = '<|tools_prefix|>[{"f": {}, "g": {"a": 1}}]<|tools_suffix|>'
    assert read(said, maker=APERTUS) == [call("f", "{}"), call("g", '{"a": 1}')]


def test_a_call_that_is_cut_off_is_not_complete() -> None:
    said = '<|tools_prefix|>[{"f": {"a": 1'
    assert read(said, maker=APERTUS) == [call("f", '{"a": 1', complete=False)]
    assert read("Hi.<|tools_prefix|>[{", maker=APERTUS) == [text("Hi.<|tools_prefix|>[{")]


@pytest.mark.parametrize("body", ["f()", "{f: {}}", '[{"f" {}}]', '[{"": {}}]'])
def test_what_names_no_tool_is_text(body: str) -> None:
    said = f"<|tools_prefix|>{body}<|tools_suffix|>"
    assert read(said, maker=APERTUS) == [text(said)]
