"""What Kimi's models write, and the reported cases with it."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.dialect_pages import check_dialects_page
from tests.plugins.dialects.reading import call, read, reasoning, template_source, text
from tests.shared_files import shared
from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolResult, Turn
from tokenwire.core.events import PartStart
from tokenwire.core.fold import Part
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.dialects.kimi.parsers import k2_parser, k3_parser

K2, K3 = k2_parser("auto"), k3_parser("auto")
BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def written(header: str, arguments: str) -> str:
    return f"<|tool_call_begin|>{header}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def cases() -> list[dict[str, object]]:
    path = shared("cases") / "codec_cases.jsonl"
    if not path.is_file():
        return []
    cases = map(json.loads, path.read_text(encoding="utf-8").strip().split("\n"))
    return [c for c in cases if c.get("model_output", {}).get("format") == "kimi"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["id"]))
def test_reported_cases_hold(case: dict) -> None:
    parts = read(*case["model_output"]["pieces"], maker=K2)
    for part, wanted in zip(parts, case["expect"].get("tool_calls", ()), strict=False):
        assert part.name == wanted["name"]
        assert json.loads(part.text) == wanted["arguments_json"]
    assert [part.kind for part in parts] == ["tool_call"]
    assert all(part.complete for part in parts)


@pytest.mark.parametrize(
    ("header", "name", "call_id"),
    [
        ("functions.f:0", "f", "functions.f:0"),
        ("functions.a.b-c:12", "a.b-c", "functions.a.b-c:12"),
        ("f:3", "f", "f:3"),
        (" functions.f ", "f", None),
    ],
)
def test_the_id_is_the_one_that_the_model_wrote(
    header: str, name: str, call_id: str | None
) -> None:
    parser = K2.parser(ParserSetup())
    events = [*parser.push(Piece(BEGIN + written(header, "{}") + END)), *parser.flush()]
    assert events[0] == PartStart(0, "tool_call", name, call_id)


def test_a_template_counts_calls_over_the_whole_conversation() -> None:
    asked = Turn("user", (Text("Tide?"),))
    turns = []
    for id in ("functions.get_tide:0", "call_x1"):
        turns += [
            asked,
            Turn("assistant", (ToolCall(id, "get_tide", '{"port":"Faro"}'),)),
            Turn("tool", (ToolResult(id, (Text("3.1 m"),)),)),
        ]
    for name in ("Kimi-K2-Instruct", "Kimi-K2-Thinking"):
        template = JinjaTemplate(template_source(name), Settings())
        shown = template.render(Dialogue((*turns, asked)), 0.0).text
        for k in (0, 1):
            assert f"<|tool_call_begin|>functions.get_tide:{k}<" in shown
            assert f"## Return of functions.get_tide:{k}\n3.1 m" in shown


def test_calls_stand_beside_reasoning_and_text() -> None:
    calls = (
        BEGIN + written("functions.f:0", '{"a": "<|tool_call_end|>"}') + written("g:1", "") + END
    )
    wanted = [
        text("so"),
        Part("tool_call", '{"a": "<|tool_call_end|>"}', "f", "functions.f:0"),
        Part("tool_call", "{}", "g", "g:1"),
    ]
    assert read(f"so{calls}", maker=K2) == wanted
    assert read(f"<think>hm</think>so{calls}", maker=K2) == [reasoning("hm"), *wanted]


def test_what_is_no_call_is_text() -> None:
    broken = f"{BEGIN}<|tool_call_begin|>functions.f:0 with no arguments"
    assert read(f"{broken}<|im_user|>", maker=K2) == [text(f"{broken}<|im_user|>")]


def test_frames_hold_reasoning_text_and_typed_arguments() -> None:
    answer = (
        "hm<|close|>think<|sep|><|open|>response<|sep|>so<|close|>response<|sep|>"
        '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>'
        '<|open|>argument key="a&quot;&amp;" type="string"<|sep|>7\n<|close|>argument<|sep|>'
        '<|open|>argument key="b" type="number"<|sep|>7<|close|>argument<|sep|>'
        '<|close|>call<|sep|><|open|>call tool="g" index="2"<|sep|>'
        '<|open|>json type="object"<|sep|>{ "x": [1] }<|close|>json<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|><|close|>message<|sep|>"
    )
    wanted = [
        reasoning("hm"),
        text("so"),
        call("f", '{"a\\"&": "7\\n", "b": 7}'),
        call("g", '{ "x": [1] }'),
    ]
    assert read(answer, maker=K3, phase="reasoning") == wanted


def test_the_page_says_what_the_code_does() -> None:
    check_dialects_page("kimi", ("kimi", "kimi_k3"))
