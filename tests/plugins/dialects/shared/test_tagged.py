"""The parser of families that are data, with formats that no family has as a whole."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.dialects.laws import TOOLS, parts_of
from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.dialect_kit import run_dialect_kit
from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.json_call import json_calls
from tokenwire.plugins.dialects._shared.json_shape import JsonShape
from tokenwire.plugins.dialects._shared.maker import FormatMaker
from tokenwire.plugins.dialects._shared.tags import PARTIAL, Tags

PLAIN = json_calls(JsonShape())
SECTIONS = Format(
    "[THINK]",
    "[/THINK]",
    calls=(CallStart("@call ", PLAIN), CallStart("<|call|>", json_calls(JsonShape("", "</c>")))),
    around=("{{calls}}",),
    ends=("{{/calls}}", "</c>"),
    between=" \n;",
    dropped=("<|say|>",),
    lead=2,
)
BARE = Format(
    bare=(CallStart("{", json_calls(JsonShape(ids=("id",), wraps=("function",), is_strict=True))),)
)
ODD = FormatMaker(SECTIONS)
ONE = '{"name": "f", "arguments": {"a": 1}}'
F = call("f", '{"a": 1}')


def test_formats_that_no_family_has_conform() -> None:
    run_dialect_kit(None, ODD, examples=60)
    run_dialect_kit(None, FormatMaker(BARE), examples=60)


def test_markers_begin_with_any_character() -> None:
    answer = f"[THINK]hm[/THINK]a [b] @ {{x}} <y>\n\n@call {ONE}"
    assert read(answer, maker=ODD) == [reasoning("hm"), text("a [b] @ {x} <y>"), F]
    parser = ODD.parser(ParserSetup())
    parser.push(Piece("word"))
    assert [event.text for event in parser.push(Piece("plain; 'text', too"))] == [
        "plain; 'text', too"
    ]


def test_a_section_holds_calls_and_its_markers_are_no_text() -> None:
    answer = f"look\n\n{{{{calls}}}}\n@call {ONE};\n<|call|>{ONE}</c>{{{{/calls}}}}\n"
    assert read(answer, maker=ODD) == [text("look"), F, F]


def test_a_section_without_calls_is_text() -> None:
    assert read("{{calls}} ; no", maker=ODD) == [text("{{calls}} ; no")]
    assert read("a{{calls}}@call x", maker=ODD) == [text("a{{calls}}@call x")]
    assert read("a{{calls}}\n", maker=ODD) == [text("a{{calls}}\n")]
    assert read("a{{calls}}\n@call ", maker=ODD) == [text("a{{calls}}\n@call ")]
    assert read("a {{/calls}} b", maker=ODD) == [text("a {{/calls}} b")]


def test_what_may_stand_between_calls_is_text_where_none_follows() -> None:
    assert read(f"@call {ONE};@call {ONE}", maker=ODD) == [F, F]
    assert read(f"@call {ONE}; and", maker=ODD) == [F, text("; and")]
    assert read(f"@call {ONE};", maker=ODD) == [F, text(";")]


def test_a_dropped_marker_is_nowhere_text() -> None:
    assert read("<|say|>a<|say|>b", maker=ODD) == [text("ab")]
    assert read("[THINK]a<|say|>b[/THINK]", maker=ODD) == [reasoning("ab")]


def test_a_section_in_open_reasoning_counts_at_the_end_only() -> None:
    drafted = f"[THINK]x{{{{calls}}}}@call {ONE}"
    assert read(drafted, maker=ODD) == [reasoning("x"), F]
    inert = f"x{{{{calls}}}}@call {ONE} y"
    assert read(f"[THINK]{inert}[/THINK]", maker=ODD) == [reasoning(inert)]


def test_bare_calls_are_known_by_their_keys_and_tools() -> None:
    maker = FormatMaker(BARE)
    assert read(f"\n{ONE}\n{ONE}", maker=maker, tools=TOOLS) == [F, F]
    wrapped = f'{{"id": "c1", "function": {ONE}}}'
    with_id = read(wrapped, maker=maker, tools=TOOLS)
    assert [(part.name, part.call_id) for part in with_id] == [("f", "c1")]
    for answer in ('{"answer": 4}', ONE.replace('"f"', '"other"'), f"a {ONE}", '{"name": "f'):
        assert read(answer, maker=maker, tools=TOOLS) == [text(answer)]


@pytest.mark.parametrize("style", ["auto", "think", "none", "implicit"])
def test_a_style_of_reasoning(style) -> None:
    own, other = FormatMaker(SECTIONS, reasoning=style), FormatMaker(BARE, reasoning=style)
    assert (own.reasoning_start, own.reasoning_end) == (
        ("", "") if style == "none" else ("[THINK]", "[/THINK]")
    )
    assert other.reasoning_start == ("<think>" if style in ("think", "implicit") else "")
    assert own.phase("go on") == ("reasoning" if style == "implicit" else "content")
    assert own.phase("[THINK]\n") == ("content" if style == "none" else "reasoning")
    assert own.phase("[THINK]\n\n[/THINK]\n\n") == "content"


def test_an_implicit_block_is_closed_by_its_end_alone() -> None:
    maker = FormatMaker(SECTIONS, reasoning="implicit")
    phase = maker.phase("<|assistant|>")
    for answer in ("so[/THINK]4", "[THINK]so[/THINK]4"):
        assert read(answer, maker=maker, phase=phase) == [reasoning("so"), text("4")]


def test_reasoning_may_open_anywhere_where_the_family_says_so() -> None:
    maker = FormatMaker(Format("<t>", "</t>", is_interleaved=True, trims=""))
    answer = "a\n<t> b</t>c<t>d</t>"
    wanted = [text("a\n"), reasoning(" b"), text("c"), reasoning("d")]
    assert read(answer, maker=maker) == wanted


def test_special_tokens_may_be_part_of_a_marker() -> None:
    maker = FormatMaker(Format("<|channel>thought\n", "<channel|>"))
    pieces = ("<|channel>", "thought", "\n", "hm", "<channel|>", "4", "<|other|>")
    parts = read(*pieces, maker=maker, special=("<|channel>", "<channel|>", "<|other|>"))
    assert parts == [reasoning("hm"), text("4")]
    assert maker.phase("<|channel>thought") == "reasoning"


def test_a_state_of_another_format_is_refused() -> None:
    parser = ODD.parser(ParserSetup())
    parser.push(Piece("<|call|>{"))
    with pytest.raises(msgspec.ValidationError):
        FormatMaker(BARE).parser(ParserSetup()).restore(parser.save())


BITS = st.sampled_from(
    ["[THINK]", "[/THINK]", "{{calls}}", "{{/calls}}", "@call ", "<|call|>", "</c>", "<|say|>",
     ONE, "[", "{", "@", "\n", ";", "x", '"']
)  # fmt: skip


@given(st.lists(BITS, max_size=9), st.booleans(), st.sampled_from(["content", "reasoning"]))
def test_any_mixture_reads_the_same_however_it_is_cut(bits, parse_tools, phase) -> None:
    setup = ParserSetup(parse_tools=parse_tools, phase=phase)
    whole = "".join(bits)
    ways = []
    for pieces in ([whole], list(whole), bits):
        parser = ODD.parser(setup)
        events = [event for piece in pieces for event in parser.push(Piece(piece))]
        ways.append(parts_of([*events, *parser.flush()]))
    assert ways[0] == ways[1] == ways[2]


def test_a_marker_that_another_one_begins_with_is_waited_for() -> None:
    tags = Tags(("<a>", "<a><b>", "[x"))
    assert tags.find("y<a>", 0) == (1, PARTIAL)
    assert tags.find("y<a>", 0, is_final=True) == (1, "<a>")
    assert tags.find("y<a><", 0) == (1, PARTIAL)
    assert tags.find("y<a>z", 0) == (1, "<a>")
    assert tags.find("y<a><b>z[x", 0) == (1, "<a><b>")
    assert tags.find("y[x", 0) == (1, "[x")
    assert tags.firsts == "<["
