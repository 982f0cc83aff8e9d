"""A call's arguments as they go out: the SDK's accumulator reads every prefix, and the whole is an
object, whatever the model wrote and however it was cut."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jiter import from_json

from tokenwire.core.json_body import read_object
from tokenwire.plugins.protocols.messages.input_json import InputJson, InputState
from tokenwire.plugins.protocols.messages.partial_json import whole_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
ODD = st.text(st.sampled_from('{}[]:,"\\u12d8cetrx 0.-\n'), max_size=30)
BROKEN = st.tuples(OBJECTS, st.integers(0, 80), ODD).map(
    lambda drawn: json.dumps(drawn[0])[: drawn[1]] + drawn[2]
)
TEXTS = ODD | BROKEN | st.text(max_size=20)


def sent(text: str, cuts: list[int], *, complete: bool = True) -> list[str]:
    """Each piece goes to a fresh machine, made from the last one's state."""
    state = InputState()
    out = []
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, end in pairwise(edges):
        machine = InputJson(state)
        out.append(machine.push(text[start:end]))
        state = machine.save()
    return [*out, InputJson(state).close(complete=complete)]


@given(OBJECTS, st.sampled_from([None, 2]), st.lists(st.integers(0, 60), max_size=6))
def test_an_object_goes_out_as_written(value, indent, cuts):
    text = json.dumps(value, indent=indent, ensure_ascii=bool(indent))
    assert "".join(sent(text, cuts)) == text
    for end in range(len(text)):
        assert "".join(sent(text[:end], cuts, complete=False)) == text[:end]


@given(TEXTS, st.lists(st.integers(0, 60), max_size=6))
def test_anything_adds_up_to_one_object(text, cuts):
    pieces = sent(text, cuts)
    whole = "".join(pieces)
    assert whole == "".join(sent(text, []))
    if text:
        value = json.loads(whole)
        assert isinstance(value, dict)
        read_object(f'{{"input":{whole}}}'.encode())
        assert from_json(whole.encode(), partial_mode=True) == value
    for count in range(1, len(pieces)):
        so_far = "".join(pieces[:count])
        if so_far:
            from_json(so_far.encode(), partial_mode=True)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=6))
def test_what_was_cut_off_is_read_as_the_sdk_reads_it(text, cuts):
    whole = "".join(sent(text, cuts, complete=False))
    if whole:
        assert json.loads(whole_members(whole)) == from_json(whole.encode(), partial_mode=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nonsense", {"raw": "nonsense"}),
        ("[1, 2]", {"raw": "[1, 2]"}),
        ('"{}"', {"raw": '"{}"'}),
        ("{a: 1}", {"raw": "{a: 1}"}),
        ("{} {}", {"raw": "{} {}"}),
        ('{"a": 1,}', {"a": 1, "raw": ",}"}),
        ('{"a": 1} x', {"a": 1, "raw": " x"}),
        ('{"a": 1, "b": NaN}', {"a": 1, "raw": ', "b": NaN}'}),
        ('{"a": 1e999}', {"raw": '{"a": 1e999}'}),
        ('{"a": 1, "b": "two\nlines"}', {"a": 1, "b": None, "raw": '\nlines"}'}),
        ('{"a": {"b": [1, tru]}}', {"a": None, "raw": ", tru]}}"}),
        ('{"a": "x\\ud800"}', {"a": None, "raw": '\\ud800"}'}),
        ('{"a": "cut', {"a": None, "raw": ""}),
        (" ", {"raw": " "}),
    ],
)
def test_where_it_stops_being_an_object(text, value):
    for cuts in ([], list(range(len(text)))):
        assert json.loads("".join(sent(text, cuts))) == value


def test_it_may_not_be_deeper_than_a_history_can_hold():
    good = '{"a":' * 123 + "1" + "}" * 123
    assert "".join(sent(good, [])) == good
    deep = '{"a":' * 124 + "1" + "}" * 124
    value = json.loads("".join(sent(deep, [])))
    assert value["a"] is None
    assert value["raw"].startswith('"a":{"a":1')


def test_long_strings_go_out_as_they_come():
    machine = InputJson()
    assert machine.push('{"path": "a", "text": "') == '{"path": "a", "text": "'
    for word in ("tides ", "and ", "more"):
        assert machine.push(word) == word
    assert machine.save().held == ""


@given(st.lists(st.text() | st.text(st.sampled_from('"\\n\x1f\x7f\x85\u2028é}'), max_size=4)))
def test_plain_words_take_a_short_way_to_the_same_end(words):
    begun = '{"a":"'
    ends = [len(begun) + len("".join(words[:count])) for count in range(len(words))]
    text = begun + "".join(words)
    assert "".join(sent(text, ends)) == "".join(sent(text, []))
