"""What shows the rows of an answer's shape, which several protocols have."""

from __future__ import annotations

from typing import Any

from tests.flow.fields.examples import Example

__all__ = ("SHAPES",)

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
NAMED = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
TAG = {"type": "structural_tag", "format": {"type": "regex", "pattern": "a+"}}
TAG_TEXT = '{"type":"structural_tag","format":{"type":"regex","pattern":"a+"}}'
KINDS = "tests/core/test_constraints.py::test_each_kind_is_held_where_the_engine_can"
"""The mock keeps to no grammar."""


def shape(name: str, value: Any, **more: Any) -> Example:
    return Example({name: value}, lacking="response_format", **more)


def typed(**members: Any) -> Example:
    elsewhere = KINDS if members["type"] == "grammar" else ""
    return shape("response_format", members, elsewhere=elsewhere)


def output(name: str, value: Any) -> Example:
    elsewhere = KINDS if name == "grammar" else ""
    return shape("structured_outputs", {name: value}, elsewhere=elsewhere)


SHAPES = {
    "response_format": shape("response_format", NAMED),
    "response_format.type=json_object": typed(type="json_object"),
    "response_format.type=json_schema": typed(**NAMED),
    "response_format.json_schema.description": Example(
        {"response_format": {**NAMED, "json_schema": {"schema": SCHEMA, "description": "d"}}}
    ),
    "response_format.type=regex": typed(type="regex", regex="a+"),
    "response_format.type=grammar": typed(type="grammar", grammar='root ::= "x"'),
    "response_format.type=choice": typed(type="choice", choices=["x", "y"]),
    "response_format.type=structural_tag": typed(**TAG),
    "structured_outputs": shape("structured_outputs", {"choice": ["x", "y"]}),
    "structured_outputs.json": output("json", SCHEMA),
    "structured_outputs.json_object": output("json_object", True),
    "structured_outputs.regex": output("regex", "a+"),
    "structured_outputs.choice": output("choice", ["x", "y"]),
    "structured_outputs.grammar": output("grammar", 'root ::= "x"'),
    "structured_outputs.structural_tag": output("structural_tag", TAG_TEXT),
    "guided_json": shape("guided_json", SCHEMA),
    "guided_regex": shape("guided_regex", "a+"),
    "guided_choice": shape("guided_choice", ["x", "y"]),
    "guided_grammar": shape("guided_grammar", 'root ::= "x"', elsewhere=KINDS),
    "regex": shape("regex", "a+"),
    "ebnf": shape("ebnf", 'root ::= "x"', elsewhere=KINDS),
}
