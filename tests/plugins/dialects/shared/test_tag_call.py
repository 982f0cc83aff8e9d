"""One call in tags: its values may hold its markup, and whatever comes, nothing is made up."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.dialects.shared.reader_runs import read_call
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.tag_call import TagCall
from tokenwire.plugins.dialects._shared.tag_spelling import TagSpelling

SPELLING = TagSpelling(
    head="<function=",
    name_end=">",
    param="<parameter=",
    key_end=(">",),
    value_end="</parameter>",
    end="</function>",
    close="</tool_call>",
    after=("</tool_call>", "<tool_call>"),
    trim=True,
)
PAIRS = TagSpelling(
    param="<arg_key>",
    key_end=("</arg_key>", "<arg_value>"),
    value_end="</arg_value>",
    end="</tool_call>",
    after=("<tool_call>",),
)
CDATA = TagSpelling(
    head='<function name="',
    name_end='">',
    param='<param name="',
    key_end=('">',),
    value_end="</param>",
    end="</function>",
    cdata=("<![CDATA[", "]]>"),
)
TOOLS = (
    ToolSpec("f", None, '{"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}'),
)


def read(text: str, spelling: TagSpelling = SPELLING, *, is_lone: bool = False):
    return read_call(partial(TagCall, spelling, TOOLS, is_lone=is_lone), text)


def body(*parameters: tuple[str, str], end: str = "</function>") -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    return f"\n<function=f>\n{inner}{end}"


def one(arguments: str, *, complete: bool = True):
    return [("f", arguments, complete)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (body(), "{}"),
        (body(("a", "x"), ("b", "3")), '{"a": "x", "b": 3}'),
        (body(("a", "")), '{"a": ""}'),
        (body(("a", "\n x \n")), '{"a": "\\n x \\n"}'),
        (body(("a", "007"), ("a", "8")), '{"a": "007", "a": "8"}'),
        (body(("c", "[1]"), ("d", "x")), '{"c": [1], "d": "x"}'),
        ("<function=f><parameter=a>x</parameter></function>", '{"a": "x"}'),
        # A closing tag inside a value, and one that is almost there.
        (body(("a", "of </parameter> and </function> and </tool_call>.")),
         '{"a": "of </parameter> and </function> and </tool_call>."}'),
        (body(("a", "<parameter=b>\n</paramete")), '{"a": "<parameter=b>\\n</paramete"}'),
        # A closing tag inside a value, and the beginning of a parameter that is none behind it.
        (body(("a", "</parameter>\n<parameter=\n</parameter><parameter=</x>")),
         '{"a": "</parameter>\\n<parameter=\\n</parameter><parameter=</x>"}'),
        # Tags that are missing.
        ("<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>", '{"a": "x"}'),
        ("<function=f>\n<parameter=a>\nx\n<parameter=b>\n3\n</parameter>\n</function>",
         '{"a": "x", "b": 3}'),
        ("<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>", '{"a": "x"}'),
    ],
)  # fmt: skip
def test_a_call_is_read(text: str, wanted: str) -> None:
    calls, rest = read(text)
    assert calls == one(wanted)
    assert rest in ("", "\n</tool_call>")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<function=f>", ""),
        ("<function=f>\n<param", ""),
        ("<function=f>\n<parameter=a>", '{"a": '),
        ("<function=f>\n<parameter=a>\nx", '{"a": "x'),
        ("<function=f>\n<parameter=a>\nx\n</para", '{"a": "x'),
        ("<function=f>\n<parameter=a>\nx\n</parameter>\n</func", '{"a": "x'),
        ("<function=f>\n<parameter=c>\n[1, 2", '{"c": '),
        ("<function=f>\n<parameter=b>\n12", '{"b": 12'),
    ],
)
def test_a_call_that_is_cut_off_ends_where_the_model_ended(text: str, wanted: str) -> None:
    assert read(text) == (one(wanted, complete=False), "")


@pytest.mark.parametrize(
    "text", [' {"name": "f"}', " and so on", "<function=\nf>", "<function=a<b>", "\n" * 80]
)
def test_what_is_no_call_is_text(text: str) -> None:
    assert read(text) == ([], text)


def test_other_text_between_tags_ends_the_call_unfinished() -> None:
    assert read("<function=f>\nwell</function>") == (one("", complete=False), "well</function>")


def test_a_call_without_its_tag_must_name_a_tool() -> None:
    assert read("f></function>", is_lone=True) == (one("{}"), "")
    assert read("g></function>", is_lone=True) == ([], "g></function>")
    assert read("f", is_lone=True) == ([], "f")


def test_a_bare_name_counts_only_before_a_tag() -> None:
    assert read("f</tool_call>", PAIRS) == (one("{}"), "")
    text = "f\n<arg_key>a</arg_key>\n<arg_value>\n</arg_value>.</arg_value>\n</tool_call>"
    assert read(text, PAIRS) == (one('{"a": "\\n</arg_value>."}'), "")
    for no_call in ("f, or so", "` is a tag", "f\nx", '{"name": "f"}'):
        assert read(no_call, PAIRS) == ([], no_call)


def test_cdata_is_taken_off_and_nothing_is_unescaped() -> None:
    text = 'f"><param name="a"><![CDATA[<b>]]></param> ]]></param></function>'
    assert read('<function name="' + text, CDATA) == (one('{"a": "<b>]]></param> "}'), "")
    text = '<function name="f"><param name="a">&lt;</param></function>'
    assert read(text, CDATA) == (one('{"a": "&lt;"}'), "")


SAFE = st.lists(
    st.sampled_from(("<", "</", "parameter", "</parameter>", "<parameter=b>", "</tool_call>",
                     "\n", "x", '"', "\\", "é🌊", "\t"))
    | st.text(max_size=4),
    max_size=8,
).map("".join)  # fmt: skip


@given(SAFE, SAFE)
def test_a_value_may_hold_anything(first: str, second: str) -> None:
    # Why the dots: at its end, and on a line of its own, markup may be the missing tag's successor.
    first, second = (f".{value}." for value in (first, second))
    first, second = (v.replace("\n<parameter=b>", "\n.<parameter=b>") for v in (first, second))
    if any(_ends(value) for value in (first, second)):
        return
    calls, _ = read(body(("a", first), ("c", second + "x")))
    ((_, arguments, complete),) = calls
    assert complete
    assert json.loads(arguments) == {"a": first, "c": second + "x"}


def _ends(value: str) -> bool:
    """Whether it holds a closing tag and what may follow one."""
    for part in value.split("</parameter>")[1:]:
        rest = part.lstrip(" \t\r\n")
        if re.match(r"<parameter=[^<\n]+>|</function>|</tool_call>|\Z", rest):
            return True
    return value.count("</parameter></parameter>") > 0


@given(st.lists(st.sampled_from((
    "<function=", "f", ">", "<parameter=", "a", "\n", "</parameter>", "</function>", "x", "<",
    "</tool_call>", "<tool_call>", '{"b": 1}', " ",
)), max_size=14).map("".join))  # fmt: skip
def test_anything_is_read_the_same_however_it_is_cut(text: str) -> None:
    for spelling in (SPELLING, PAIRS, CDATA):
        for is_lone in (False, True):
            read(text, spelling, is_lone=is_lone)
