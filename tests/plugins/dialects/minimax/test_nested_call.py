"""M3's nested arguments: the schema says what empty and bare values are."""

from __future__ import annotations

from functools import partial

import pytest

from tests.plugins.dialects.shared.reader_runs import read_call
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.minimax.nested_call import MAX_DEPTH, NestedCall

N = "]<]minimax[>["
SCHEMA = """{"properties": {"a": {"type": "string"},
 "n": {"type": "integer"}, "e": {"type": "array"},
 "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "number"}}}},
 "o": {"type": "object"}, "item": {"type": "string"}}}"""
TOOLS = (ToolSpec("f", None, SCHEMA),)


def tag(name: str, inner: str = "") -> str:
    return f"{N}<{name}>{inner}{N}</{name}>"


def read(inner: str, end: str = f"{N}</invoke>"):
    make = partial(NestedCall, N, TOOLS, close=f"{N}</tool_call>")
    return read_call(make, f'\n{N}<invoke name="f">{inner}{end}')


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        ("", "{}"),
        (tag("a", "\n007 <b>"), '{"a": "\\n007 <b>"}'),
        (tag("a") + tag("n", "5"), '{"a": "", "n": 5}'),
        (tag("e") + tag("o") + tag("n"), '{"e": [], "o": {}, "n": ""}'),
        (tag("l", tag("item", tag("k", "1.5")) + tag("item")), '{"l": [{"k": 1.5}, {}]}'),
        (tag("o", tag("item", "x")), '{"o": {"item": "x"}}'),
        (tag("x", tag("item", "y") + tag("item", "2")), '{"x": ["y", 2]}'),
        (tag("x", "\n" + tag("y", "z") + "\n"), '{"x": {"y": "z"}}'),
    ],
)
def test_tags_become_the_values_that_the_schema_allows(inner: str, wanted: str) -> None:
    assert read(inner) == ([("f", wanted, True)], "")


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        (f"{N}<a>x", '{"a": "x'),
        (f"{N}<l>{N}<item>{N}<k>1", '{"l": [{"k": 1'),
        (f"{N}<a>x{N}</b>", f'{{"a": "x{N}</b>'),
        (f"{N}<a>x]<]min", '{"a": "x'),
    ],
)
def test_a_call_that_is_cut_off_ends_where_the_model_ended(inner: str, wanted: str) -> None:
    assert read(inner, end="") == ([("f", wanted, False)], "")


def test_open_tags_at_the_calls_end_make_it_incomplete() -> None:
    assert read(f"{N}<a>x") == ([("f", '{"a": "x', False)], "")
    assert read(f"{N}<o>{N}<a>x{N}</a>") == ([("f", '{"o": {"a": "x"', False)], "")


def test_depth_is_bounded() -> None:
    calls, rest = read(f"{N}<o>" * (MAX_DEPTH + 9), end="")
    assert calls[0][2] is False
    assert rest.startswith(f"{N}<o>")
