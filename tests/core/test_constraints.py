"""What a dialogue's tools and format become as one constraint, and what is listed instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tokenwire.core.constraints import Held, held, offered
from tokenwire.core.dialogue import Dialogue, ResponseFormat, Text, ToolChoice, ToolSpec, Turn
from tokenwire.core.errors import RequestError
from tokenwire.core.ports.dialect import (
    CallGrammar,
    CallSpelling,
    ParamSpelling,
    Parser,
    ParserMaker,
    ParserSetup,
)
from tokenwire.core.tokens import Constraint, EngineCard

KINDS = ("json_schema", "json_object", "regex", "grammar", "choice", "structural_tag")
CAN = EngineCard("e", 259, 100, capabilities=tuple(f"grammar:{kind}" for kind in KINDS))
LAME = replace(CAN, capabilities=())
ASKED = Dialogue((Turn("user", (Text("hi"),)),))
SCHEMA = '{"type": "object"}'
TOOLS = (ToolSpec("f", parameters='{"required": ["a"]}'), ToolSpec("g"), ToolSpec("c", custom=True))


class Maker(ParserMaker):
    """Calls as <NAME>ARGUMENTS</>, all of them between brackets or not."""

    def __init__(self, *, wraps: bool = False, style: Any = "json", can: bool = True) -> None:
        self._wraps, self._style, self._can = wraps, style, can

    def parser(self, setup: ParserSetup) -> Parser:
        raise NotImplementedError

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        if not self._can:
            return None
        calls = tuple(
            CallSpelling(tool.name, f"<{tool.name}>", "</>", self._style) for tool in tools
        )
        return CallGrammar("<", calls, "[" * self._wraps, "]" * self._wraps, ",")


def asked(choice: ToolChoice | None = None, **more: Any) -> Dialogue:
    return replace(ASKED, tools=TOOLS, tool_choice=choice or ToolChoice(), **more)


def shape(found: Held) -> Any:
    assert found.constraint is not None
    assert found.constraint.kind == "structural_tag"
    return json.loads(found.constraint.text)["format"]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (ResponseFormat("json_schema", SCHEMA), SCHEMA),
        (ResponseFormat("json_object"), ""),
        (ResponseFormat("regex", "a+"), "a+"),
        (ResponseFormat("grammar", 'root ::= "x"'), 'root ::= "x"'),
        (ResponseFormat("choice", choices=("a", "b\n")), '["a","b\\n"]'),
        (
            ResponseFormat("structural_tag", '{"format": {"type": "any_text"}}'),
            '{"type":"structural_tag","format":{"type": "any_text"}}',
        ),
    ],
)
def test_each_kind_is_held_where_the_engine_can(wanted: ResponseFormat, text: str) -> None:
    dialogue = replace(ASKED, response_format=wanted)
    assert held(dialogue, Maker(), CAN) == Held(Constraint(wanted.kind, text, "now"))
    found = held(dialogue, Maker(), CAN, thinks=True)
    assert found == Held(Constraint(wanted.kind, text, "after_reasoning"))
    assert held(dialogue, Maker(), LAME) == Held(ignored=("response_format",))


def test_nothing_asked_nothing_held() -> None:
    assert held(ASKED, Maker(), CAN) == Held()
    assert held(asked(), Maker(), CAN) == Held()
    assert held(asked(ToolChoice("none")), Maker(), CAN) == Held()


FORCED = [
    (ToolChoice("required"), ["f", "g", "c"]),
    (ToolChoice("named", ("g",)), ["g"]),
    (ToolChoice("allowed", ("f", "c"), required=True), ["f", "c"]),
]


@pytest.mark.parametrize(("choice", "names"), FORCED)
@pytest.mark.parametrize("parallel", [True, False])
def test_forced_calls_are_tags_at_least_one(
    choice: ToolChoice, names: list[str], parallel: bool
) -> None:
    calls = shape(held(asked(replace(choice, parallel=parallel)), Maker(), CAN))
    assert calls["type"] == "tags_with_separator"
    assert calls["at_least_one"]
    assert calls["stop_after_first"] != parallel
    assert calls["separator"] == ","
    assert [(tag["begin"], tag["end"]) for tag in calls["tags"]] == [
        (f"<{name}>", "</>") for name in names
    ]


def test_arguments_keep_to_the_schema_and_free_text_is_under_input() -> None:
    tags = shape(held(asked(ToolChoice("required")), Maker(), CAN))["tags"]
    first, second, custom = (tag["content"]["json_schema"] for tag in tags)
    assert first == {"required": ["a"]}
    assert second == {"type": "object"}
    assert custom["required"] == ["input"]


def test_what_stands_around_all_calls_is_around_the_tags() -> None:
    found = shape(held(asked(ToolChoice("required")), Maker(wraps=True), CAN))
    kinds = [each["type"] for each in found["elements"]]
    assert kinds == ["const_string", "tags_with_separator", "const_string"]
    strict = asked(response_format=ResponseFormat())
    strict = replace(strict, tools=(replace(TOOLS[0], strict=True),))
    free = shape(held(strict, Maker(wraps=True), CAN))
    assert (free["type"], free["triggers"]) == ("triggered_tags", ["["])
    assert free["tags"][0]["content"]["type"] == "tags_with_separator"


def test_other_styles_are_named_and_unknown_ones_left_free() -> None:
    tags = shape(held(asked(ToolChoice("named", ("f",))), Maker(style="qwen_xml"), CAN))["tags"]
    assert tags[0]["content"]["style"] == "qwen_xml"
    tags = shape(held(asked(ToolChoice("named", ("f",))), Maker(style="free"), CAN))["tags"]
    assert tags[0]["content"] == {"type": "any_text"}


def test_a_shaped_answer_or_calls() -> None:
    wanted = ResponseFormat("json_schema", SCHEMA)
    answer, calls = shape(held(asked(response_format=wanted), Maker(), CAN))["elements"]
    assert answer["json_schema"] == {"type": "object"}
    assert calls["type"] == "tags_with_separator"
    forced = held(asked(ToolChoice("required"), response_format=wanted), Maker(), CAN)
    assert forced.ignored == ("response_format",)


@pytest.mark.parametrize("maker", [Maker(can=False), Maker()])
def test_what_no_grammar_holds_is_listed(maker: Maker) -> None:
    card = LAME if maker.call_grammar(()) is not None else CAN
    strict = tuple(replace(tool, strict=True) for tool in TOOLS)
    wanted = ResponseFormat("json_object")
    found = held(
        replace(asked(ToolChoice("required"), response_format=wanted), tools=strict), maker, card
    )
    assert found == Held(ignored=("tool_choice", "tools[].strict", "response_format"))
    assert held(asked(ToolChoice("allowed", ("f",))), maker, card) == Held()


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice("named", ("g",)), ("g",)),
        (ToolChoice("allowed", ("f", "c")), ("f", "c")),
        (ToolChoice("required"), ("f", "g", "c")),
        (ToolChoice(), ("f", "g", "c")),
    ],
)
def test_only_absence_keeps_a_tool_from_being_called_without_a_grammar(
    choice: ToolChoice, names: tuple[str, ...]
) -> None:
    dialogue = asked(choice)
    assert tuple(tool.name for tool in offered(dialogue, Maker(), LAME).tools) == names
    assert offered(dialogue, Maker(), CAN) is dialogue
    assert offered(dialogue, Maker(), None) is dialogue


OLD = (
    '{"type":"structural_tag","structures":[{"begin":"<f>","schema":{"type":"object"},'
    '"end":"</f>"}],"triggers":["<f"]}'
)


def test_the_older_form_of_a_structural_tag_becomes_the_newer() -> None:
    wanted = ResponseFormat("structural_tag", OLD)
    found = shape(held(replace(ASKED, response_format=wanted), Maker(), CAN))
    assert found["type"] == "triggered_tags"
    assert found["tags"][0]["content"]["json_schema"] == {"type": "object"}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"structures": 5, "triggers": []}'])
def test_what_is_no_structural_tag_is_refused(text: str) -> None:
    wanted = ResponseFormat("structural_tag", text)
    with pytest.raises(RequestError, match="structural tag"):
        held(replace(ASKED, response_format=wanted), Maker(), CAN)


@pytest.mark.parametrize(
    "schema",
    ["false", '{"type": "string"}', '{"const": 5}', '{"enum": ["a"]}', '{"allOf": [false]}',
     '{"anyOf": [{"type": "null"}, {"type": ["string", "array"]}]}'],
)  # fmt: skip
def test_a_tool_that_no_call_can_fit_is_refused_where_it_must_be_called(schema: str) -> None:
    tools = (ToolSpec("f", parameters=schema), ToolSpec("g"))
    for choice in (ToolChoice("required"), ToolChoice("named", ("f",))):
        with pytest.raises(RequestError, match="'f' must allow an object"):
            held(replace(asked(choice), tools=tools), Maker(), CAN)
    held(replace(asked(ToolChoice("named", ("g",))), tools=tools), Maker(), CAN)
    held(replace(asked(), tools=tools), Maker(), CAN)


class Chosen(Maker):
    """Calls with an id that the model chooses, in parameters."""

    def call_grammar(self, tools: Sequence[ToolSpec]) -> CallGrammar | None:
        param = ParamSpelling("<{}>", "</>")
        call = CallSpelling(
            "f", "<f:", "</f>", "parameters", before="[0-9]+>", excludes=("</f>",), param=param
        )
        return CallGrammar("", (call,), separator="\n", can_join=True)


def test_what_the_model_chooses_stands_before_parameters_in_order() -> None:
    schema = json.dumps({
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"enum": ["x"]}},
        "required": ["b"],
    })  # fmt: skip
    dialogue = replace(asked(ToolChoice("named", ("f",))), tools=(ToolSpec("f", None, schema),))
    calls = shape(held(dialogue, Chosen(), CAN))
    assert calls["separator"] == ""
    [tag] = calls["tags"]
    assert tag["end"] == ["</f>\n", "</f>"]
    chosen, arguments = tag["content"]["elements"]
    assert chosen == {"type": "regex", "pattern": "[0-9]+>"}
    first, second, third = arguments["elements"]
    assert first["elements"][0]["content"] == {"type": "any_text", "excludes": ["</f>"]}
    assert second["content"] == {"type": "json_schema", "json_schema": {"type": "integer"}}
    assert third["elements"][0]["content"]["elements"] == [{"type": "const_string", "value": "x"}]
    assert third["elements"][1] == {"type": "const_string", "value": ""}


def test_calls_that_no_marker_tells_are_held_where_they_are_forced() -> None:
    strict = tuple(replace(tool, strict=True) for tool in TOOLS)
    found = held(replace(asked(), tools=strict), Chosen(), CAN)
    assert found == Held(ignored=("tools[].strict",))
