"""What would take minutes to compile is refused at once, and what takes moments is not."""

from __future__ import annotations

import json

import pytest

from tokenwire.core.tokens import Constraint
from tokenwire.plugins.engines.cuda.constrained import GrammarError
from tokenwire.plugins.engines.cuda.grammar.weight import (
    DEEPEST,
    MOST_ALTERNATIVES,
    refuse_heavy,
)


def nested(depth: int) -> object:
    schema: object = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def enumerated(count: int) -> object:
    return {"properties": {"a": {"enum": [f"v{index}" for index in range(count)]}}}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("choice", [f"c{index}" for index in range(MOST_ALTERNATIVES)]),
        ("json_schema", enumerated(MOST_ALTERNATIVES)),
        ("json_schema", nested(DEEPEST // 2 - 2)),
        ("structural_tag", {"format": {"elements": [{"json_schema": nested(3)}]}}),
    ],
)
def test_what_compiles_in_a_moment_passes(kind: str, value: object) -> None:
    refuse_heavy(Constraint(kind, json.dumps(value)))


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("choice", [f"c{index}" for index in range(MOST_ALTERNATIVES + 1)], "4001 alternatives"),
        ("json_schema", enumerated(MOST_ALTERNATIVES + 1), "4001 alternatives"),
        ("json_schema", nested(DEEPEST), "nested more than 200 levels"),
        ("structural_tag", {"format": enumerated(9_000)}, "9000 alternatives"),
    ],
)
def test_what_would_take_minutes_does_not(kind: str, value: object, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        refuse_heavy(Constraint(kind, json.dumps(value)))


def test_what_is_no_json_is_left_to_the_backend() -> None:
    refuse_heavy(Constraint("regex", "[" * 9_999))
    refuse_heavy(Constraint("json_schema", "{"))
