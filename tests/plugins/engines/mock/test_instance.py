"""What the mock makes for a schema is what the schema takes, as another implementation judges; what
it cannot make it refuses; texts match the patterns they were made for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.mock.instance import Unmade, instance
from tokenwire.plugins.engines.mock.pattern import Unmatched, matching
from tokenwire.plugins.engines.mock.spelling import spelled
from tokenwire.plugins.engines.mock.validity import takes

NAMES = st.sampled_from(["a", "b", "c", "some name", "é"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3))


def between(least: str, most: str, top: int) -> st.SearchStrategy[dict[str, Any]]:
    """Neither bound, one, or two that meet."""
    pairs = st.tuples(st.integers(0, top), st.integers(0, 3))
    both = pairs.map(lambda pair: {least: pair[0], most: pair[0] + pair[1]})
    return st.one_of(
        st.just({}),
        both,
        both.map(lambda one: {least: one[least]}),
        both.map(lambda one: {most: one[most]}),
    )


PATTERNS = ["^[a-z]+$", r"\d{3}", "^(yes|no)$", "[^a]", r"^\w+@\w+\.com$", "x*", "^a{2,4}b?$"]
STRINGS = between("minLength", "maxLength", 6).map(lambda size: {"type": "string", **size})
NUMBERS = st.sampled_from(["integer", "number"]).flatmap(
    lambda kind: between("minimum", "maximum", 9).map(lambda size: {"type": kind, **size})
)
LEAVES = st.one_of(
    STRINGS,
    NUMBERS,
    st.sampled_from([True, {}, {"type": "null"}, {"type": "boolean"}]),
    st.sampled_from(PATTERNS).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    SCALARS.map(lambda value: {"const": value}),
    st.integers(1, 7).map(lambda step: {"type": "integer", "multipleOf": step, "minimum": 3}),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def made(parts: tuple[dict[str, Any], bool, bool]) -> dict[str, Any]:
        properties, is_closed, is_needed = parts
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if is_closed:
            schema["additionalProperties"] = False
        if is_needed:
            schema["required"] = list(properties)
        return schema

    parts = st.tuples(st.dictionaries(NAMES, inner, max_size=3), st.booleans(), st.booleans())
    return parts.map(made)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = st.tuples(inner, between("minItems", "maxItems", 2)).map(
        lambda parts: {"type": "array", "items": parts[0], **parts[1]}
    )
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        objects(inner),
        arrays,
        several.map(lambda options: {"anyOf": options}),
        inner.map(lambda one: {"allOf": [one, {"title": "t"}]}),
        inner.map(lambda one: {"$defs": {}, "anyOf": [one, {"type": "null"}]}),
    )


SATISFIABLE = st.recursive(LEAVES, grown, max_leaves=6)


@given(SATISFIABLE)
def test_a_schema_takes_the_instance_that_was_made_for_it(schema: Any) -> None:
    Draft202012Validator(schema).validate(instance(schema))


ANY = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        grown(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"oneOf": each}),
        st.lists(inner, min_size=1, max_size=2).map(lambda each: {"allOf": each}),
        inner.map(lambda one: {"not": one}),
        st.tuples(inner, inner, inner).map(
            lambda each: {"if": each[0], "then": each[1], "else": each[2]}
        ),
        inner.map(lambda one: {"type": "array", "items": one, "minItems": 2, "uniqueItems": True}),
        inner.map(lambda one: {"type": "array", "contains": one}),
    ),
    max_leaves=5,
)


@given(ANY)
def test_whatever_the_schema_the_instance_is_right_or_there_is_none(schema: Any) -> None:
    try:
        value = instance(schema)
    except Unmade:
        return
    Draft202012Validator(schema).validate(value)


@given(ANY, st.recursive(SCALARS, lambda one: st.lists(one, max_size=2), max_leaves=4))
def test_its_own_judgement_is_the_others(schema: Any, value: Any) -> None:
    assert takes(schema, value, schema) == Draft202012Validator(schema).is_valid(value)


def test_references_are_followed_and_those_that_may_end_do() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["next"],
    }
    assert instance({"$defs": {"node": node}, "$ref": "#/$defs/node"}) == {"next": None}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"$ref": "#"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "http://example.com/other"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "string", "pattern": "(?=a)b"},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": 5, "required": ["a"]},
        {"type": "object", "required": ["a"], "patternProperties": {"(": {}}},
        {"type": "integer", "multipleOf": 0},
    ],
)
def test_what_no_value_can_meet_is_refused(schema: Any) -> None:
    with pytest.raises(Unmade):
        instance(schema)


@pytest.mark.parametrize("pattern", [*PATTERNS, r"[0-9]{3}-x", r"(a|bc)+\s?", r"[^\W\d]", "a.c"])
def test_texts_match_as_a_whole(pattern: str) -> None:
    assert re.fullmatch(pattern, matching(pattern, whole=True))


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", r"(a)\1", "[^\\s\\S]", "a" * 9 + "(?<!a)"])
def test_patterns_beyond_it_are_refused(pattern: str) -> None:
    with pytest.raises(Unmatched):
        matching(pattern, whole=True)


TAG = {"type": "tag", "begin": "<f>", "content": {"type": "any_text"}, "end": ["</f>", "<|e|>"]}


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ({"type": "const_string", "value": "x"}, "x"),
        (TAG, "<f></f>"),
        ({"type": "tags_with_separator", "tags": [TAG], "at_least_one": True}, "<f></f>"),
        ({"type": "tags_with_separator", "tags": [TAG], "at_least_one": False}, ""),
        ({"type": "triggered_tags", "triggers": ["<"], "tags": [TAG]}, "free"),
        ({"type": "any_text"}, "free"),
        ({"type": "or", "elements": [{"type": "grammar", "grammar": ""}, TAG]}, "<f></f>"),
        ({"type": "json_schema", "json_schema": {"const": "é"}}, '"é"'),
        (
            {
                "type": "json_schema",
                "style": "qwen_xml",
                "json_schema": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            },
            "<parameter=a>\n{}\n</parameter>\n",
        ),
    ],
)
def test_structural_tags_are_spelled(shape: dict[str, Any], text: str) -> None:
    tag = json.dumps({"type": "structural_tag", "format": shape})
    assert spelled(Constraint("structural_tag", tag), "free") == text


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("json_schema", "{"),
        Constraint("choice", "[]"),
        Constraint("structural_tag", "{}"),
        Constraint("structural_tag", '{"format":{"type":"grammar","grammar":"root ::= x"}}'),
    ],
)
def test_constraints_that_mean_nothing_are_refused(constraint: Constraint) -> None:
    with pytest.raises(ValueError, match=r"."):
        spelled(constraint, "")
