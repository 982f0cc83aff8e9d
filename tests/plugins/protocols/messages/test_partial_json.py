"""What is whole of a cut-off JSON text; the official SDK's reader is the oracle."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jiter import from_json

from tokenwire.plugins.protocols.messages.partial_json import whole_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_every_prefix_reads_as_the_sdk_reads_it(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    for end in range(1, len(text) + 1):
        cut = text[:end]
        assert json.loads(whole_members(cut)) == from_json(cut.encode(), partial_mode=True), cut


@given(st.text(max_size=30) | st.text(st.sampled_from('{}[]:,"\\u12etrx '), max_size=30))
def test_anything_gives_json(text):
    json.loads(whole_members(text))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", "{}"),
        ("no", "{}"),
        ("{a: 1}", "{}"),
        ('{"a": 01}', "{}"),
        ('{"a": 1,}', '{"a": 1}'),
        ('{"a": [1, 2}', '{"a": [1, 2]}'),
        ('{"a": "\\x"}', "{}"),
        ('{"a": "\\u12', "{}"),
        ('{"a": truely}', "{}"),
        ('{"a": 1} and more', '{"a": 1}'),
        ("[1, [2", "[1, [2]]"),
    ],
)
def test_edges(text, whole):
    assert whole_members(text) == whole


def test_deep_nesting_is_read_in_reasonable_time():
    whole_members('{"a":' * 20_000)
    whole_members('{"a": "' + "x" * 1_000_000)
