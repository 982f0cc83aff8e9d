"""Bare values become JSON by the schema, the same however they come, and nothing else changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.schema import ANY, Schema
from tokenwire.plugins.dialects._shared.typed_value import TypedValue


def convert(text: str, *kinds: str, python: bool = False) -> str:
    """The whole, and by letters with a fresh machine for each: the same."""
    whole = TypedValue(frozenset(kinds), python=python)
    out = whole.push(text) + whole.end()
    value, parts = TypedValue(frozenset(kinds), python=python), ""
    for letter in text:
        parts += value.push(letter)
        fresh = TypedValue(frozenset(kinds), python=python)
        fresh.restore(value.save())
        value = fresh
    assert parts + value.end() == out
    return out


@pytest.mark.parametrize(
    ("text", "kinds", "wanted"),
    [
        ("007", ["string"], '"007"'),
        ("5", ["string"], '"5"'),
        ("null", ["string"], '"null"'),
        ('{"a": 1}', ["string"], '"{\\"a\\": 1}"'),
        ("null", ["string", "null"], "null"),
        ("nullable", ["string", "null"], '"nullable"'),
        ("", ["string", "null"], '""'),
        ("007", ["string", "integer"], '"007"'),
        ("5", ["string", "integer"], "5"),
        ("5", ["integer"], "5"),
        (" 5\n", ["integer"], "5"),
        ("5.0", ["integer"], "5.0"),
        ("5.5", ["integer"], '"5.5"'),
        ("-0.5e+10", ["number"], "-0.5e+10"),
        ("1e999", ["number"], "1e999"),
        ("0x10", ["number"], '"0x10"'),
        ("NaN", ["number"], '"NaN"'),
        ("2031-04-02", ["integer"], '"2031-04-02"'),
        ("", ["integer"], '""'),
        ("true", ["boolean"], "true"),
        ("True", ["boolean"], '"True"'),
        ("yes", ["boolean"], '"yes"'),
        ('{"a": 1e999, "b": [NULL]}', ["object"], '"{\\"a\\": 1e999, \\"b\\": [NULL]}"'),
        ('{"a":  1e999}', ["object"], '{"a":  1e999}'),
        ("[1, 2]", ["object"], '"[1, 2]"'),
        ("[1, 2", ["array"], '"[1, 2"'),
        ("[" * 100_000, ["array"], json.dumps("[" * 100_000)),
    ],
)
def test_a_value_of_an_allowed_type_is_kept_as_written(
    text: str, kinds: list[str], wanted: str
) -> None:
    if len(text) < 1000:
        assert convert(text, *kinds) == wanted
    else:
        value = TypedValue(frozenset(kinds))
        assert value.push(text) + value.end() == wanted


@pytest.mark.parametrize(
    ("text", "kinds", "wanted"),
    [
        ("True", ["boolean"], "true"),
        ("None", ["string", "null"], "null"),
        ("None", ["string"], '"None"'),
        ("{'a': [1, None], 'b': True}", ["object"], '{"a": [1, null], "b": true}'),
        ("(1, 2)", ["array"], "[1, 2]"),
        ("{'a': f()}", ["object"], "\"{'a': f()}\""),
        ("{1, 2}", ["object"], '"{1, 2}"'),
        ("{'a': 1e999}", ["object"], "\"{'a': 1e999}\""),
    ],
)
def test_values_printed_by_python_are_read(text: str, kinds: list[str], wanted: str) -> None:
    assert convert(text, *kinds, python=True) == wanted


@given(st.text(max_size=30) | st.text("0123456789.eE+-nulltrueTrueNone{}[]\" '\n", max_size=12))
def test_a_string_is_never_changed(text: str) -> None:
    for python in (False, True):
        assert json.loads(convert(text, "string", python=python)) == text
        json.loads(convert(text, *ANY, python=python))


@given(st.integers() | st.booleans() | st.none() | st.lists(st.integers(), max_size=3))
def test_an_untyped_parameter_keeps_every_json_value(value: object) -> None:
    assert convert(json.dumps(value), *ANY) == json.dumps(value)


@given(st.text(max_size=20), st.sampled_from(sorted(ANY)), st.integers(0, 20))
def test_what_is_left_at_a_cut_is_a_beginning(text: str, kind: str, end: int) -> None:
    value = TypedValue(frozenset({kind}))
    begun = value.push(text[:end])
    assert (begun + value.stop()).strip('" \n') is not None
    if kind == "string":
        assert (begun + value.stop() + '"').startswith(json.dumps(text[:end], ensure_ascii=False))


def schema(text: str) -> Schema:
    return Schema.of((ToolSpec("f", None, text),), "f")


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ('{"type": "integer"}', {"integer"}),
        ('{"type": ["integer", "null"]}', {"integer", "null"}),
        ('{"anyOf": [{"type": "object"}, {"type": "null"}]}', {"object", "null"}),
        ('{"oneOf": [{"$ref": "#/$defs/p"}, {"type": "string"}]}', {"object", "string"}),
        ('{"allOf": [{"$ref": "#/$defs/p"}, {"description": "d"}]}', {"object"}),
        ('{"$ref": "#/$defs/loop"}', set(ANY)),
        ('{"$ref": "https://example.com/s.json"}', set(ANY)),
        ('{"enum": ["a", 1, null]}', {"string", "number", "null"}),
        ('{"const": true}', {"boolean"}),
        ('{"properties": {}}', {"object"}),
        ('{"items": {}}', {"array"}),
        ('{"type": "string", "nullable": true}', {"string", "null"}),
        ('{"type": "file"}', set(ANY)),
        ("{}", set(ANY)),
        ("true", set(ANY)),
    ],
)
def test_types_are_found_through_references_and_unions(node: str, wanted: set[str]) -> None:
    whole = (
        f'{{"properties": {{"a": {node}}}, "$defs": {{"p": {{"type": "object"}},'
        ' "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}}'
    )
    assert schema(whole).member("a").kinds == wanted


def test_a_deep_schema_ends_and_a_broken_one_says_nothing() -> None:
    deep = '{"anyOf": [' * 150 + "{}" + "]}" * 150
    assert schema(f'{{"properties": {{"a": {deep}}}}}').member("a").kinds == ANY
    for broken in ("", "{", "[]", "7", "[" * 100_000):
        assert schema(broken).member("a").kinds == ANY
    assert Schema.of((), "f").members == frozenset()


def test_members_and_items_have_schemas_of_their_own() -> None:
    root = schema(
        '{"properties": {"l": {"type": "array", "items": {"type": "object", "properties":'
        ' {"n": {"type": "number"}}, "additionalProperties": {"type": "boolean"}}}}}'
    )
    item = root.member("l").item()
    assert item.member("n").kinds == {"number"}
    assert item.member("other").kinds == {"boolean"}
    assert root.members == {"l"}
