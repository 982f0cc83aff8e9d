"""Answers that response templates describe, beside what transformers reads of them."""

from __future__ import annotations

import json

import pytest

from tests.plugins.dialects.generic.templates import CHANNELS, GRANITE, KV, PYTHON, QWEN, TAGGED
from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.dialect_names import Signs, pick
from tokenwire.core.dialogue import ToolSpec
from tokenwire.core.errors import ConfigError
from tokenwire.core.factory import Services
from tokenwire.core.host import Host, lone_services
from tokenwire.core.ports.dialect import ParserSetup
from tokenwire.core.prompt import Piece
from tokenwire.core.testing.dialect_kit import run_dialect_kit
from tokenwire.plugins.dialects.generic.maker import GenericMaker
from tokenwire.plugins.dialects.generic.spec import read_template

SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}'
TOOLS = (ToolSpec("f", "Does it.", SCHEMA),)
CALL = '<tool_call>\n{"name": "f", "arguments": {"n": 7}}\n</tool_call>'
SEVEN = call("f", '{"n": 7}')
FINAL = "<|channel|>final<|message|>"
THINK = "<|channel|>analysis<|message|>"
TO_F = "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>"

ANSWERS = [
    (QWEN, "hello", [text("hello")]),
    (QWEN, "<think>\nhm\n</think>\n\n4<|im_end|>", [reasoning("hm"), text("4")]),
    (QWEN, f"{CALL}\n{CALL}<|im_end|>", [SEVEN, SEVEN]),
    (QWEN, f"<think>maybe {CALL}</think>no", [reasoning(f"maybe {CALL}"), text("no")]),
    (GRANITE, f"{CALL}", [SEVEN]),
    (CHANNELS, f"{THINK}hm<|end|><|start|>assistant{FINAL}4<|return|>",
     [reasoning("hm"), text("4")]),
    (CHANNELS, f'{THINK}hm<|end|>{TO_F}{{"n":7}}<|call|>', [reasoning("hm"), call("f", '{"n":7}')]),
    (TAGGED, "ok <call>\n<function=f>\n<p=n>\n7\n</p>\n<p=s>\n7\n</p>\n</function>\n</call>",
     [text("ok"), call("f", '{"n": 7, "s": "7"}')]),
    (KV, "CALL f\nn: 7\ns: a: b\nEND", [call("f", '{"n": 7, "s": "a: b"}')]),
    (PYTHON, "<|calls|>[f(n=7), f(s='a')]<|end_calls|>", [SEVEN, call("f", '{"s": "a"}')]),
]  # fmt: skip


def maker(template) -> GenericMaker:
    return GenericMaker(read_template(template))


@pytest.mark.parametrize(("template", "answer", "parts"), ANSWERS)
def test_an_answer_is_read_however_it_is_cut(template, answer, parts) -> None:
    assert read(answer, maker=maker(template), tools=TOOLS) == parts


@pytest.mark.torch  # Why: transformers comes with the same extra.
@pytest.mark.parametrize(("template", "answer", "parts"), ANSWERS)
def test_transformers_reads_the_same(template, answer, parts) -> None:
    chat_parsing = pytest.importorskip("transformers.utils.chat_parsing")
    tools = [{"type": "function", "function": {"name": "f", "parameters": json.loads(SCHEMA)}}]
    theirs = chat_parsing.parse_response(answer, template, prefix="", tools=tools)
    ours: dict[str, object] = {}
    for part in parts:
        if part.kind == "tool_call":
            found = {"name": part.name, "arguments": json.loads(part.text)}
            ours.setdefault("tool_calls", []).append({"type": "function", "function": found})
        else:
            ours["thinking" if part.kind == "reasoning" else "content"] = part.text
    theirs.pop("role", None)
    for found in theirs.get("tool_calls", ()):
        found.setdefault("type", "function")
    assert theirs == ours


def test_text_before_calls_is_kept_whatever_comes_behind_them() -> None:
    answer = f"I look.\n{CALL}\n{CALL} So.<|im_end|>"
    parts = [text("I look."), SEVEN, SEVEN, text("So.")]
    assert read(answer, maker=maker(QWEN), tools=TOOLS) == parts


def test_special_tokens_may_be_anchors_or_part_of_one() -> None:
    special = ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|call|>", "<|constrain|>")
    pieces = (
        "<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant",
        "<|channel|>", "commentary to=functions.f ", "<|constrain|>", "json", "<|message|>",
        '{"n": 7}', "<|call|>", "<|other|>",
    )  # fmt: skip
    parts = read(*pieces, maker=maker(CHANNELS), tools=TOOLS, special=(*special, "<|other|>"))
    assert parts == [reasoning("hm"), SEVEN]


def test_arguments_of_a_named_call_go_out_while_they_come() -> None:
    parser = maker(CHANNELS).parser(ParserSetup(tools=TOOLS))
    assert not list(parser.push(Piece(TO_F[:-3])))
    first, *rest = parser.push(Piece(TO_F[-3:] + '{"s": "ab'))
    assert first.name == "f"
    assert [event.text for event in rest] == ['{"s": "ab']
    assert [event.text for event in parser.push(Piece("cd"))] == ["cd"]


def test_what_is_no_call_is_text_and_what_is_cut_off_is_not_complete() -> None:
    broken = "<call>\n<function=f>\nnonsense\n</function>\n</call>"
    assert read(broken, maker=maker(TAGGED), tools=TOOLS) == [text(broken)]
    cut = "<call>\n<function=f>\n<p=n>\n7"
    assert read(cut, maker=maker(TAGGED), tools=TOOLS) == [call("f", "", complete=False)]
    assert read('<tool_call>{"name": "f", "arguments": {"n"', maker=maker(QWEN), tools=TOOLS) == [
        call("f", '{"n"', complete=False)
    ]
    assert read("<tool_call>oops</tool_call>", maker=maker(QWEN), tools=TOOLS) == [
        text("<tool_call>oops</tool_call>")
    ]


def test_white_space_is_kept_where_the_template_says_so() -> None:
    assert read(" a \n ", maker=maker(KV), tools=TOOLS) == [text(" a \n ")]
    assert read(" a \n ", maker=maker(QWEN), tools=TOOLS) == [text("a")]


def test_with_tools_off_and_without_reasoning() -> None:
    assert read(f"x {CALL}", maker=maker(QWEN), parse_tools=False) == [text(f"x {CALL}")]
    assert read("a</think>b", maker=maker(QWEN), phase="reasoning") == [reasoning("a"), text("b")]
    plain = GenericMaker(read_template(QWEN), reasoning="none")
    assert read("<think>a</think>", maker=plain) == [text("<think>a</think>")]


def test_the_prompt_says_where_the_answer_begins() -> None:
    prompt = "<|im_start|>assistant\n<think>\nx\n</think>\n<|im_start|>assistant\n"
    assert maker(QWEN).phase(prompt) == "content"
    assert maker(QWEN).phase(prompt + "<think>\n") == "reasoning"
    assert maker(QWEN).phase(prompt + "<think>\n\n</think>\n\n") == "content"
    assert maker(CHANNELS).phase("<|start|>assistant" + THINK) == "reasoning"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": {}}, "wanted fields"),
        ({"version": 2}, "version"),
        ({"extra": 1}, "extra"),
        ({"start_anchor": None}, "start_anchor"),
        ({"fields": {"a": {}, "b": {}}}, "more than one"),
        ({"fields": {"a": {"open": ""}}}, "empty"),
        ({"fields": {"a": {"open": "x", "open_pattern": "x"}}}, "wanted one"),
        ({"fields": {"a": {"open_pattern": "(?=x)"}}}, "cannot read"),
        ({"fields": {"a": {"open_pattern": "x*"}}}, "fits everywhere"),
        ({"fields": {"tool_calls": {"content": "json"}}}, "no open anchor"),
        ({"fields": {"tool_calls": {"open": "x", "transform": "{content}"}}}, "cannot read"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_in_words(change, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        maker({**QWEN, **change})


def test_auto_takes_it_where_a_checkpoint_ships_one_and_no_family_fits(tmp_path) -> None:
    host = Host()

    def picked(template: str | None) -> str:
        services = Services(lone_services().keys, checkpoint=Checkpoint(tmp_path))
        dialects = [host.dialects.build(name, {}, services) for name in host.dialects]
        return pick("auto", Signs(template), dialects=dialects)[0]

    config = tmp_path / "tokenizer_config.json"
    assert picked("<think>") == "think"
    config.write_text(json.dumps({"response_template": KV}))
    assert picked("{{ messages }}") == picked("<think>") == picked(None) == "generic"
    assert picked("<tool_call>{'name': n, \"arguments\": a}") == "hermes"
    services = Services(lone_services().keys, checkpoint=Checkpoint(tmp_path))
    assert host.parsers.build("generic", {}, services).markers == ("A:", "CALL", "END")
    config.write_text(json.dumps({"response_template": {"fields": {}}}))
    assert picked("{{ messages }}") == "plain"
    with pytest.raises(ConfigError, match="wanted a response_template"):
        host.parsers.build("generic", {}, lone_services())


@pytest.mark.parametrize("template", [QWEN, GRANITE, CHANNELS, TAGGED, KV, PYTHON])
def test_a_parser_from_a_template_conforms(template) -> None:
    run_dialect_kit(None, maker(template), examples=60)
