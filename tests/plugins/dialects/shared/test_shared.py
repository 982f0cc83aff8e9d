"""Marker search and the JSON cursor, for any cutting."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tokenwire.plugins.dialects._shared.json_stream import JsonCursor
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL, Tags

TAGS = Tags(("<a>", "</a>", "<abc>"))


def test_tags_finds_whole_markers_and_beginnings_at_the_end() -> None:
    assert TAGS.find("xx<a>y", 0) == (2, "<a>")
    assert TAGS.find("x<b<abc>", 0) == (3, "<abc>")
    assert TAGS.find("x<ab", 0) == (1, PARTIAL)
    assert TAGS.find("x<", 0) == (1, PARTIAL)
    assert TAGS.find("x<", 0, is_final=True) == (2, NO_MARKER)
    assert TAGS.find("x<ad <", 0) == (5, PARTIAL)
    assert TAGS.find("<a><a>", 1) == (3, "<a>")
    assert Tags(()).find("x<", 0) == (2, NO_MARKER)
    assert TAGS.at("<a>", 0) == "<a>"
    assert TAGS.at("x<a>", 0) == NO_MARKER


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(['"', "\\", "}{", "<a>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.integers(0, 60), st.booleans())
def test_the_cursor_stops_behind_the_value_wherever_the_text_is_cut(value, cut, ascii_only) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    whole = text + ",]} rest"
    cut = min(cut, len(text))
    cursor = JsonCursor()
    end = 0
    for piece in (whole[:cut], whole[cut:]):
        saved, cursor = cursor.save(), JsonCursor()
        cursor.restore(saved)
        if not cursor.is_over:
            end += cursor.feed(piece, 0)
    assert cursor.is_over
    assert whole[:end] == text


def test_the_cursor_stops_at_an_angle_outside_strings() -> None:
    cursor = JsonCursor()
    text = '{"a": "<", "b": [1 <x'
    assert cursor.feed(text, 0) == text.rindex("<")
    assert not cursor.is_over
    assert not cursor.in_string
