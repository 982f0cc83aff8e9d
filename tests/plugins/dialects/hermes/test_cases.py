"""Failures that people reported against other servers, as far as a parser alone decides them."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.events import PartEnd
from tokenwire.core.ports.dialect import ParserMaker, ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.hermes.maker import hermes_maker, think_maker

TIDE = '<tool_call>\n{"name": "get_tide", "arguments": {"port": "%s"}}\n</tool_call>'
FARO = call("get_tide", '{"port": "Faro"}')
THINK = think_maker()


def test_parallel_calls_are_calls_of_their_own() -> None:
    brest, cork = (call("get_tide", f'{{"port": "{port}"}}') for port in ("Brest", "Cork"))
    assert read(TIDE % "Brest", "\n" + TIDE % "Cork") == [brest, cork]


@pytest.mark.parametrize("value", ["3", "true", "null", "[1, 2]", '"x"', '{"a": {}}', "-0.10e5"])
def test_the_last_brace_is_not_lost_beside_the_marker(value: str) -> None:
    head = '<tool_call>\n{"name": "set_lamp", "arguments": {"room": "attic", "level": '
    arguments = f'{{"room": "attic", "level": {value}}}'
    assert read(head + value, "}}\n</tool_call>") == [call("set_lamp", arguments)]


def test_a_call_that_comes_with_the_end_of_another_is_kept() -> None:
    lamp = '<tool_call>\n{"name": "set_lamp", "arguments": {"level": %d}'
    pieces = (lamp % 1, "}\n</tool_call>\n" + lamp % 2 + "}\n</tool_call>")
    assert read(*pieces) == [call("set_lamp", f'{{"level": {n}}}') for n in (1, 2)]


def test_a_prompt_that_opened_reasoning_begins_in_it() -> None:
    maker = hermes_maker()
    assert maker.phase("<|im_start|>assistant\n<think>\n") == "reasoning"
    assert maker.phase("<think>\nx\n</think>\n<|im_start|>assistant\n<think>\n") == "reasoning"
    assert maker.phase("<think> in a question</think>\n<|im_start|>assistant\n") == "content"
    parts = read("two and", " two</th", "ink>\n\n4", phase="reasoning")
    assert parts == [reasoning("two and two"), text("4")]
    first = maker.parser(ParserSetup(phase="reasoning")).push(Piece("two"))
    assert first[0].kind == "reasoning"


def test_without_reasoning_an_answer_is_text_even_where_the_prompt_opened_a_block() -> None:
    parts = read('{"answer": ', '"17"}', phase="reasoning", reasoning=False)
    assert parts == [text('{"answer": "17"}')]


def test_a_call_in_reasoning_that_was_never_closed_counts() -> None:
    parts = read("need tide data ", TIDE % "Faro", phase="reasoning")
    assert parts == [reasoning("need tide data "), FARO]
    assert read("<think>need it\n", TIDE % "Faro", "\n") == [reasoning("need it"), FARO]


def test_a_draft_in_reasoning_that_is_closed_later_is_inert() -> None:
    pieces = ("<think>maybe ", TIDE % "Brest", " no, Cork</think>", TIDE % "Cork")
    draft = reasoning(f"maybe {TIDE % 'Brest'} no, Cork")
    assert read(*pieces) == [draft, call("get_tide", '{"port": "Cork"}')]


def test_a_draft_right_before_the_end_of_reasoning_is_inert() -> None:
    assert read("<think>", TIDE % "Brest", "</think>ok") == [reasoning(TIDE % "Brest"), text("ok")]
    inside = '<think><tool_call>{"name": "f", "arguments": {"a": "</think>"}}</tool_call>'
    shown = '<tool_call>{"name": "f", "arguments": {"a": "'
    assert read(inside)[0] == reasoning(shown)


def test_a_draft_that_other_text_follows_is_inert_though_nothing_closes_the_reasoning() -> None:
    pieces = (f"hm {TIDE % 'Brest'} or rather not",)
    assert read(*pieces, phase="reasoning") == [reasoning(pieces[0])]
    assert read("a <tool_call> is", phase="reasoning") == [reasoning("a <tool_call> is")]


def test_a_call_in_open_reasoning_that_is_longer_than_what_is_held_counts() -> None:
    arguments = json.dumps({"text": "word " * 2000})
    pieces = f'<think>write\n<tool_call>{{"name": "save", "arguments": {arguments}}}</tool_call>'
    assert read(pieces) == [reasoning("write"), call("save", arguments)]


def test_a_call_behind_closed_reasoning_in_the_same_piece() -> None:
    pieces = ("<think>check the port", f" first.</think>{TIDE % 'Faro'}")
    assert read(*pieces) == [reasoning("check the port first."), FARO]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "list_rooms", "arguments": {}}',
        '{"name": "list_rooms"}',
        '{"name": "list_rooms", "arguments": null}',
        '{"arguments": {}, "name": "list_rooms"}',
        '{"arguments": null, "name": "list_rooms"}',
    ],
)
def test_no_arguments_are_an_empty_object(body: str) -> None:
    assert read(f"<tool_call>\n{body}\n</tool_call>") == [call("list_rooms", "{}")]


def test_nothing_is_said_of_a_call_before_its_name_is_whole() -> None:
    parser = hermes_maker().parser(ParserSetup())
    assert list(parser.push(Piece('<tool_call>\n{"name": "get'))) == []
    started = parser.push(Piece('_tide", "arguments": {"po'))
    assert [event.name for event in started[:1]] == ["get_tide"]
    assert [event.text for event in started[1:]] == ['{"po']


def test_a_call_that_is_cut_off_is_never_completed() -> None:
    head = '<tool_call>\n{"name": "set_lamp", "argu'
    part = call("set_lamp", '{"room": "at', complete=False)
    assert read(head + 'ments": {"room": "at') == [part]
    assert read(head) == [call("set_lamp", "", complete=False)]
    unnamed = 'I will.<tool_call>\n{"na'
    assert read(unnamed) == [text(unnamed)]


def test_an_end_marker_in_a_string_is_data() -> None:
    body = '{"name": "write_doc", "arguments": {"text": "use </tool_call> to close"}}'
    want = [call("write_doc", '{"text": "use </tool_call> to close"}')]
    assert read(f"<tool_call>\n{body}\n</tool_call>") == want
    pieces = ('<tool_call>\n{"name": "write_doc", "arguments": {"text": "use ', "</tool_call>")
    rest = ' to close"}}\n'
    assert read(*pieces, rest, "</tool_call>", special=("</tool_call>",)) == want


def test_markers_may_be_special_tokens() -> None:
    pieces = ("<tool_call>", TIDE[11:-12] % "Faro", "</tool_call>")
    assert read(*pieces, special=("<tool_call>", "</tool_call>")) == [FARO]
    pieces = ("<think>", "a", "</think>", "b", "<think>", "c", "</think>", "d", "<|end|>")
    parts = read(*pieces, special=("<think>", "</think>", "<|end|>"))
    assert parts == [reasoning("a"), text("b"), reasoning("c"), text("d")]


def test_markers_of_reasoning_later_in_the_answer_are_text() -> None:
    parts = read("<think>q</think>", "The <think> tag and </think> close it.")
    assert parts == [reasoning("q"), text("The <think> tag and </think> close it.")]
    assert read("Use <think>x</think>.") == [text("Use <think>x</think>.")]


@pytest.mark.parametrize("special", [(), ("</think>",)])
@pytest.mark.parametrize("maker", [THINK, hermes_maker()])
def test_a_stray_end_of_reasoning_is_dropped(special: tuple[str, ...], maker: ParserMaker) -> None:
    for reasons in (False, True):
        parts = read("</think>", "\n\nhello", maker=maker, special=special, reasoning=reasons)
        assert parts == [text("hello")]


def test_space_inside_is_kept_and_newlines_beside_markers_are_trimmed_once() -> None:
    pieces = ("<think>a", "  b\n", "\n c</think>\n\n", "  def f():\n", "    return 1\n")
    assert read(*pieces) == [reasoning("a  b\n\n c"), text("  def f():\n    return 1\n")]
    assert read("<think>\n\n</think>\n\nx") == [text("x")]


def test_white_space_around_calls_is_no_text() -> None:
    assert read("\n\n", TIDE % "Faro", "\n") == [FARO]
    assert read("<think>t</think>\n\n \n", TIDE % "Faro", " \n") == [reasoning("t"), FARO]
    pieces = ("Let me  look.\n\n", TIDE % "Faro", "\n", TIDE % "Faro", "\n\n Done. ")
    assert read(*pieces) == [text("Let me  look.\n"), FARO, FARO, text(" Done. ")]


def test_text_of_any_script_beside_a_marker_is_kept() -> None:
    body = TIDE % "Фару 🌊"
    parts = read("прилив 🌊<", body[1:])
    assert parts == [text("прилив 🌊"), call("get_tide", '{"port": "Фару 🌊"}')]


@pytest.mark.parametrize(
    "number", ["9007199254740993", "1e400", "0.10", "-0", "123456789012345678901234567890"]
)
def test_numbers_pass_through_as_they_were_written(number: str) -> None:
    body = f'<tool_call>{{"name": "open_ticket", "arguments": {{"id": {number}}}}}</tool_call>'
    assert read(body) == [call("open_ticket", f'{{"id": {number}}}')]


def test_with_tools_off_what_looks_like_a_call_is_text() -> None:
    pieces = ("Use ", TIDE % "X", " like so.")
    assert read(*pieces, parse_tools=False) == [text("".join(pieces))]
    special = ("<tool_call>", "</tool_call>")
    assert read("<tool_call>", "{}", "</tool_call>", special=special, parse_tools=False) == [
        text("<tool_call>{}</tool_call>")
    ]


def test_long_reasoning_streams_with_a_flat_state() -> None:
    parser = hermes_maker().parser(ParserSetup())
    read_characters = 0
    parser.push(Piece("<think>"))
    for _ in range(20_000):
        read_characters += sum(len(event.text) for event in parser.push(Piece("thought "))[-1:])
        assert len(json.dumps(parser.save())) < 100
    assert read_characters == 160_000
    assert isinstance(parser.push(Piece("</think>ok"))[0], PartEnd)


def test_without_a_style_of_reasoning_its_markers_are_text() -> None:
    maker = hermes_maker("none")
    assert read("<think>a</think>b", maker=maker) == [text("<think>a</think>b")]
    assert maker.phase("<think>\n") == "content"
