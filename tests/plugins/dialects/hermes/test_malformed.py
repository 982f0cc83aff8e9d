"""What is no call, or not quite one: passed on as text, or as it was written; never repaired."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects._shared.json_call import MAX_WAITING
from tokenwire.plugins.dialects.hermes.maker import hermes_maker

OK = '{"name": "f", "arguments": {"a": 1}}'
F = call("f", '{"a": 1}')


@pytest.mark.parametrize(
    "answer",
    [
        "<tool_call>not json</tool_call>",
        "a <tool_call> is a tag",
        "<tool_call></tool_call>",
        '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "\\ud800", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f\\udc00g", "arguments": {}}</tool_call>',
        '<tool_call>{"arguments": {"a": 1}, "name": "\\udc00\\ud800"}</tool_call>',
        '<tool_call>{"arguments": {}}</tool_call>',
        "<tool_call>{}</tool_call>",
        '<tool_call>"f"</tool_call>',
        "1 < 2 and <b> <tool_ </tool_call>",
        "text\n<tool_call>oops",
        "ends with a beginning <tool_cal",
    ],
)
def test_what_is_no_call_is_text_with_its_markers(answer: str) -> None:
    assert read(answer) == [text(answer)]


def test_a_call_behind_a_broken_one_is_read() -> None:
    tag = "<tool_call>"
    assert read(f"{tag}oops</tool_call>{tag}{OK}</tool_call>") == [
        text("<tool_call>oops</tool_call>"), F
    ]  # fmt: skip
    assert read(f"{tag}\n{tag}{OK}</tool_call>") == [F]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (f"<tool_call>{OK}", [F]),
        (f"<tool_call>{OK}<tool_call>{OK}", [F, F]),
        (f"<tool_call>{OK}\n{OK}</tool_call>", [F, F]),
        (f"<tool_call>[{OK}, {OK}]</tool_call>", [F, F]),
        (f"<tool_call>{OK}}}</tool_call>", [F]),
        (f"<tool_call>{OK[:-1]}</tool_call>", [F]),
        (f"<tool_call>{OK} and text", [F, text("and text")]),
        (f"<tool_call>{OK}</tool_call>text", [F, text("text")]),
        ('<tool_call>{"name": "f" "arguments": {"a": 1}}</tool_call>', [F]),
        ('<tool_call>{"id": 7, "name": "f", "x": [{}], "parameters": {"a": 1}}</tool_call>', [F]),
        ('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', [F]),
        ('<tool_call>{"name": "f", "arguments": {"a": 1}, "arguments": {}}</tool_call>', [F]),
        ('<tool_call>{"name": "\\u0066", "arguments": {"a": 1}}</tool_call>', [F]),
        ('<tool_call>{"name": "f", "argumnts": {"a": 1}}', [call("f", "", complete=False)]),
        ('<tool_call>{"name": "f", "index": 1}', [call("f", "{}")]),
        ('<tool_call>{"\\ud800": 1, "name": "f", "arguments": {"a": 1}}</tool_call>', [F]),
    ],
)
def test_calls_that_are_written_in_other_ways(answer: str, parts: list[object]) -> None:
    assert read(answer) == parts


@pytest.mark.parametrize("arguments", ["[1]", "3", '"text"', "{'a': 1}", '{"a": 1,}', "{a: <b>}"])
def test_arguments_go_out_as_they_were_written(arguments: str) -> None:
    answer = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
    assert read(answer) == [call("f", arguments)]


def test_a_marker_outside_strings_ends_a_call_that_its_json_does_not() -> None:
    answer = '<tool_call>{"name": "f", "arguments": {"a": [1</tool_call>then'
    assert read(answer) == [call("f", '{"a": [1', complete=False), text("then")]


@pytest.mark.parametrize("cut", ["<tool_call>", "<tool_call>\n{", '<tool_call>{"name": "get_wea'])
def test_a_call_that_ends_before_its_name_is_text(cut: str) -> None:
    assert read(cut) == [text(cut)]
    assert read("text\n" + cut) == [text("text\n" + cut)]
    assert read(f"<think>hm\n{cut}") == [reasoning(f"hm\n{cut}")]
    whole = f"<tool_call>{OK}</tool_call>"
    assert read(f"<think>hm{whole}{cut}") == [reasoning("hm"), F, text(cut)]


def test_a_header_without_end_is_text_at_last() -> None:
    answer = '<tool_call>{"arguments": {"a": "' + "x" * (MAX_WAITING + 5)
    assert read(answer) == [text(answer)]
    late = f'<tool_call>{{"arguments": {{"a": "{"x" * MAX_WAITING}"}}, "name": "f"}}</tool_call>'
    assert read(late) == [text(late)]


def test_arguments_before_the_name_are_waited_for() -> None:
    arguments = json.dumps({"a": "x" * 5000})
    late = f'<tool_call>{{"arguments": {arguments}, "name": "f"}}</tool_call>'
    assert read(late) == [call("f", arguments)]


@pytest.mark.parametrize("key", ["name", "thought"])
def test_no_header_is_longer_than_a_name_needs(key: str) -> None:
    answer = f'<tool_call>{{"{key}": "{"x" * 400}", "arguments": {{}}, "name": "f"}}</tool_call>'
    assert read(answer) == [text(answer)]


ESCAPED = st.lists(
    st.sampled_from(["\\ud83d", "\\uDE00", "\\udfff", "\\u0041", "\\\\", "ud800", "x", "\\"]),
    max_size=6,
).map("".join)


@given(ESCAPED, ESCAPED, ESCAPED)
def test_whatever_is_escaped_a_name_can_be_sent_and_nothing_is_lost(key, name, value) -> None:
    answer = f'<tool_call>{{"{key}": 1, "name": "{name}", "arguments": {{"a": "{value}"}}}}'
    parts = read(answer)
    for part in parts:
        (part.name or "").encode()
        part.text.encode()
    if [part.kind for part in parts] == ["text"]:
        assert parts == [text(answer)]


PIECES = st.lists(
    st.builds(
        Piece,
        st.sampled_from(
            ["<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", OK, "{", '"', "\\"]
        )
        | st.text(max_size=5),
        st.booleans(),
    ),
    max_size=12,
)


@given(PIECES, st.booleans(), st.booleans(), st.sampled_from(["content", "reasoning"]))
def test_no_pieces_raise(pieces, parse_tools, reasons, phase) -> None:
    setup = ParserSetup(parse_tools=parse_tools, reasoning=reasons, phase=phase)
    parser = hermes_maker().parser(setup)
    for piece in pieces:
        parser.push(piece)
    parser.flush()
