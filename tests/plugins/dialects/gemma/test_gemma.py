"""Gemma's calls: strings in quotes of their own, bare words, and what goes wrong with them."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects.gemma.maker import functiongemma_maker, gemma3_maker, gemma4_maker

GEMMA4, OLD = gemma4_maker(), functiongemma_maker()
SCHEMA = json.dumps({
    "type": "object",
    "properties": {
        "zip": {"type": "string"},
        "count": {"type": "integer"},
        "rows": {"type": "array", "items": {"type": "object", "properties": {
            "code": {"type": "string"}
        }}},
    },
})  # fmt: skip
TOOLS = (ToolSpec("f", None, SCHEMA),)


def arguments(written: str, wanted: str, *, complete: bool = True) -> None:
    """In both families' spelling."""
    made = call("f", wanted, complete=complete)
    new = written.replace("`", '<|"|>')
    assert read(f"<|tool_call>call:f{new}<tool_call|>", maker=GEMMA4, tools=TOOLS) == [made]
    old = written.replace("`", "<escape>")
    said = f"<start_function_call>call:f{old}<end_function_call>"
    assert read(said, maker=OLD, tools=TOOLS) == [made]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("{}", "{}"),
        ("{a:`x`}", '{"a":"x"}'),
        ("{a:``,b:[],c:{}}", '{"a":"","b":[],"c":{}}'),
        ('{a:`"q" \\ \n <b> } ]`}', '{"a":"\\"q\\" \\\\ \\n <b> } ]"}'),
        ("{a:1,b:-2.50,c:1e400,d:true,e:None}", '{"a":1,"b":-2.50,"c":1e400,"d":true,"e":null}'),
        ("{ a : [ 1 , {`b c`: `x` } ] }", '{"a":[1,{"b c":"x"}]}'),
        ("{a:[{b:False},[`x`,2]]}", '{"a":[{"b":false},["x",2]]}'),
        ('{"a":"x\\n\\"y\\u00e9"}', '{"a":"x\\n\\"y\\u00e9"}'),
        ("{a:Tokyo city,b:2024-01-02,c:nan}", '{"a":"Tokyo city","b":"2024-01-02","c":"nan"}'),
        ("{a:x <b> y}", '{"a":"x <b> y"}'),
        ("{zip:00123,rows:[{code:7}],count:7}", '{"zip":"00123","rows":[{"code":"7"}],"count":7}'),
    ],
)
def test_arguments_become_json(written: str, wanted: str) -> None:
    json.loads(wanted)
    arguments(written, wanted)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("{a:12", '{"a":'),
        ("{a:`x", '{"a":"x'),
        ("{a:[1,{b:2}", '{"a":[1,{"b":2}'),
        ("{a", "{"),
    ],
)
def test_what_is_cut_off_is_not_completed(written: str, wanted: str) -> None:
    said = "<|tool_call>call:f" + written.replace("`", '<|"|>')
    made = call("f", wanted, complete=False)
    assert read(said, maker=GEMMA4, tools=TOOLS) == [made]


@pytest.mark.parametrize("broken", ["{a:}", "{a:1]", "{:1}", "{a 1}", "{a:{b}", "{a:1<tool_call|>"])
def test_what_is_no_argument_breaks_the_call_off(broken: str) -> None:
    first, *_ = read(f"<|tool_call>call:f{broken} and so on", maker=GEMMA4, tools=TOOLS)
    assert (first.kind, first.complete) == ("tool_call", False)


def test_a_string_may_hold_the_end_marker() -> None:
    arguments("{a:`<tool_call|><end_function_call>`}", '{"a":"<tool_call|><end_function_call>"}')


@pytest.mark.parametrize("said", ["<|tool_call>f{}", "<|tool_call>call: {}", "<|tool_call>call:f<"])
def test_what_has_no_name_is_text(said: str) -> None:
    assert read(f"{said} x", maker=GEMMA4, tools=TOOLS) == [text(f"{said} x")]


def test_thought_text_and_calls() -> None:
    thought = "<|channel>thought\nhm\n<channel|>"
    one = "<|tool_call>call:f{}<tool_call|>"
    made = call("f", "{}")
    assert read(thought, "Hi.", maker=GEMMA4) == [reasoning("hm"), text("Hi.")]
    assert read(thought, one, one, maker=GEMMA4) == [reasoning("hm"), made, made]
    assert read("<|channel>thought\n<channel|>", "Hi.", maker=GEMMA4) == [text("Hi.")]
    prompt = "<|turn>model\n<|channel>thought\n"
    assert (GEMMA4.phase(prompt), GEMMA4.phase(f"{prompt}<channel|>")) == ("reasoning", "content")


def test_markers_are_special_tokens() -> None:
    special = ("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<turn|>")
    pieces = (
        special[3], "thought\n", "hm", special[4], special[0], "call:f", "{a:", special[2], "x <",
        "b>", special[2], ",zip:", special[2], special[2], "}", special[1], special[5],
    )  # fmt: skip
    parts = read(*pieces, maker=GEMMA4, tools=TOOLS, special=special)
    assert parts == [reasoning("hm"), call("f", '{"a":"x <b>","zip":""}')]


def test_gemma_3_writes_calls_as_text() -> None:
    said = "```tool_code\nprint(f(x=1))\n```"
    assert read(said, maker=gemma3_maker(), tools=TOOLS) == [text(said)]
