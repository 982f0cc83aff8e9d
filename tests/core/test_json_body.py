"""JSON bodies: what is refused, with which words and where."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.errors import RequestError
from tokenwire.core.json_body import MAX_DEPTH, check_depth, read_object, to_struct


def fault(body: bytes) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_object(body)
    return caught.value


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"null", "must be a JSON object, not null"),
        (b"[]", "not an array"),
        (b'"x"', "not a string"),
        (b"true", "not a boolean"),
        (b"4", "not a number"),
        (b'{"a":[1,]}', "trailing comma in array at byte 8"),
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b'{"a":-Infinity}', "Infinity is not a JSON number"),
        (b'{"a":1e999}', "number out of range"),
        (b'{"a":"\xff"}', "not valid UTF-8 at byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "not valid UTF-8"),
        (b'{"a":"\\ud800"}', "lone surrogate"),
        (b'{"a":"\\udc00"}', "lone surrogate"),
        (b'{"a":"\\ud83d\\ude00\\ude00"}', "lone surrogate"),
        (b'{"\\ud800":1}', "lone surrogate"),
        (b'{"a":"x\ny"}', "not valid JSON"),
        (b'{"a":1}{', "trailing characters"),
    ],
)
def test_refused_with_a_reason(body, words):
    assert words in fault(body).message


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a":"\\\\ud800"}', {"a": "\\ud800"}),
        (b'{"a":"x:\\"y{[:","b":"\\\\"}', {"a": 'x:"y{[:', "b": "\\"}),
        (b'{"a":12345678901234567890123}', {"a": 12345678901234567890123}),
        (b'{"a":"\\u0000"}', {"a": "\0"}),
    ],
)
def test_read_as_it_stands(body, value):
    assert read_object(body) == value


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize("extra", [b"", b',"b":' + b"[[]," * 9 + b"1" + b"]" * 9])
def test_depth_has_one_limit(extra):
    allowed = nested(MAX_DEPTH)[:-1] + extra + b"}"
    assert read_object(allowed)
    deeper = nested(MAX_DEPTH + 1)[:-1] + extra + b"}"
    assert fault(deeper).code == "too_deep"


@given(
    st.lists(st.sampled_from(("[]", '[1,"x"]', '{"a":1}', "{}", '"[["')), max_size=3),
    st.lists(st.booleans(), min_size=MAX_DEPTH - 3, max_size=MAX_DEPTH + 2),
    st.sampled_from(("1", '"x"', "{}", "[]", '{"a":1}', '{"a":[]}', "[{}]")),
)
def test_any_body_has_the_same_limit(beside, kinds, inmost):
    """Whatever objects and arrays are made of, and whatever stands at the bottom and beside."""
    value: object = json.loads(inmost)
    for is_object in kinds:
        others = dict(zip("abc", map(json.loads, beside), strict=False))
        value = {"n": value, **others} if is_object else [value, *others.values()]
    depth = len(kinds) + 1 + {"1": 0, '"x"': 0, '{"a":[]}': 2, "[{}]": 2}.get(inmost, 1)
    body = json.dumps({"metadata": value}).encode()
    if depth > MAX_DEPTH:
        assert fault(body).code == "too_deep"
    else:
        assert read_object(body) == {"metadata": value}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"messages":[{"content":' + b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        (b"[" * 200 + b"]" * 200) * 500,
    ],
)
def test_absurd_nesting_is_told_before_decoding(body):
    assert "nested deeper than" in fault(body).message


def test_brackets_within_strings_are_no_nesting():
    body = json.dumps({"a": "[{" * 1000 + '\\"' * 10}).encode()
    assert read_object(body)


def test_depth_of_json_within_a_string():
    check_depth('"' + "[" * 1000 + '"', param="x")
    with pytest.raises(RequestError, match="messages\\[1\\]") as caught:
        check_depth("[" * (MAX_DEPTH + 1), param="messages[1].arguments")
    assert caught.value.param == "messages[1].arguments"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"model":"a","model":"b"}', "model"),
        (b'{"model":"a","mod\\u0065l":"b"}', "model"),
        (b'{"messages":[{"role":"user"},{"role":"a","role":"b"}]}', "messages[1].role"),
        (b'{"messages":[{"c":[{"t":1,"t":2}]}]}', "messages[0].c[0].t"),
        (
            b'{"tools":[{"function":{"parameters":{"a":1,"a":1}}}]}',
            "tools[0].function.parameters.a",
        ),
    ],
)
def test_keys_written_twice(body, param):
    error = fault(body)
    assert (error.param, error.code) == (param, "duplicate_key")


def test_a_key_written_twice_elsewhere_takes_the_last():
    assert read_object(b'{"metadata":{"a":1,"a":2}}') == {"metadata": {"a": 2}}


words = st.text(st.characters(codec="utf-8"), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(words, json_values, max_size=4), st.booleans())
def test_every_sound_object_is_read(value, ascii_only):
    assert read_object(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=64))
def test_nothing_but_request_errors(body):
    for candidate in (body, b'{"a":' + body + b"}", b'{"a":"' + body + b'"}'):
        with suppress(RequestError):
            assert isinstance(read_object(candidate), dict)


class Inner(msgspec.Struct):
    name: str
    counts: list[int] = []


class Outer(msgspec.Struct):
    items: list[Inner]


@pytest.mark.parametrize(
    ("value", "param", "words"),
    [
        ({"items": [{"name": "a"}, {"name": 3}]}, "items[1].name", "expected `str`, got `int`"),
        ({"items": [{"name": "a", "counts": [1, "x"]}]}, "items[0].counts[1]", "expected `int`"),
        ({"items": [{}]}, "items[0].name", "is missing"),
        ({}, "items", "is missing"),
        ({"items": 3}, "items", "expected `array`"),
    ],
)
def test_types_are_told_by_path(value, param, words):
    with pytest.raises(RequestError) as caught:
        to_struct(value, Outer)
    assert caught.value.param == param
    assert words in caught.value.message
    assert caught.value.message.startswith(param)


def test_paths_go_on_from_where_the_value_stands():
    with pytest.raises(RequestError) as caught:
        to_struct({"name": 3}, Inner, at="tools[2].function")
    assert caught.value.param == "tools[2].function.name"
    with pytest.raises(RequestError) as caught:
        to_struct(None, Inner, at="tools[2].function")
    assert caught.value.param == "tools[2].function"
