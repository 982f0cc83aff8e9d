"""The pattern machine finds what Python's re finds, in whole texts and in beginnings of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import ConfigError
from tokenwire.plugins.dialects.generic.pattern import compile_pattern
from tokenwire.plugins.dialects.generic.search import search

ATOMS = ("a", "b", "(?:ab|a)", "[ab]", "[^a]", "[]a]", r"\s", r"\w", ".", r"\.", "(?:a|b|c)", "ab")
TIMES = ("", "", "", "*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{1,}?")
patterns = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(TIMES)).map("".join), min_size=1, max_size=5
).map("".join)
wholes = st.lists(patterns, min_size=1, max_size=3).map("|".join)


@given(wholes, st.text("abc. \n", max_size=9))
def test_it_finds_what_backtracking_finds_and_never_too_early(pattern: str, text: str) -> None:
    program = compile_pattern(pattern)
    wanted = re.compile(pattern, re.DOTALL).search(text)
    found = search(program, text, 0, is_final=True)
    assert (found and (found.start, found.end)) == (wanted and wanted.span())
    for end in range(len(text) + 1):
        early = search(program, text[:end], 0, is_final=False)
        if early is None:
            assert found is None or found.end > end
        elif early.is_pending:
            assert found is None or found.start >= early.start
        else:
            assert early == found


def test_groups_and_the_end_of_the_text() -> None:
    program = compile_pattern(r"<f=(?P<name>[^>]+)>(?P<more>x)?")
    found = search(program, "a <f=go>x", 0, is_final=True)
    assert found is not None
    assert found.groups == {"name": "go", "more": "x"}
    closing = compile_pattern(r"</f>|\Z")
    assert search(closing, "abc", 0, is_final=False).is_pending
    assert search(closing, "abc", 0, is_final=True).start == 3
    assert search(closing, "abc</f>x", 0, is_final=False).end == 7


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?<!a)", r"(a)\1", "(?i)a", "^a", "a**", "(a", "a)", "[a", "\\", r"\b", "a{999}",
     "(?P<1>a)", "(?P<n", "(((a{90}){90}){90})"],
)  # fmt: skip
def test_what_cannot_be_searched_in_pieces_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        compile_pattern(pattern)


def test_a_match_that_never_ends_is_given_up() -> None:
    program = compile_pattern("<(?P<x>.*)>")
    found = search(program, "<" + "a" * 5000, 0, is_final=False)
    assert found is None or found.start > 0
