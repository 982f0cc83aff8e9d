"""Answers as our own V4 and V4.1 templates write them are read again; and what reading gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.examples import share
from tests.plugins.dialects import laws
from tests.plugins.dialects.reading import call, read, reasoning, text
from tokenwire.core.dialogue import (
    Dialogue,
    Document,
    Image,
    Reasoning,
    ReasoningSettings,
    Text,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Turn,
)
from tokenwire.core.errors import RequestError
from tokenwire.core.fold import Part
from tokenwire.core.host import Host
from tokenwire.core.ports.dialect import ParserMaker, Template
from tokenwire.plugins.dialects.deepseek.json_text import load
from tokenwire.plugins.dialects.deepseek.parsers import dsml_parser, section_parser
from tokenwire.plugins.dialects.deepseek.spelling import V4, V32, V41
from tokenwire.plugins.dialects.deepseek.template_v4 import DeepseekV4Template
from tokenwire.plugins.dialects.deepseek.template_v41 import DeepseekV41Template

NATIVE = {
    "v4": (DeepseekV4Template(), dsml_parser(V4, "auto")),
    "v41": (DeepseekV41Template(), dsml_parser(V41, "auto")),
}
COVERED = laws.Covered("native", exact=False)
ASKS = (Turn("user", (Text("q"),)),)
SECTION = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="a" string="true">x "y"\n</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="b" string="false">[1, {"c": null}]</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)
ARGUMENTS = '{"a": "x \\"y\\"\\n", "b": [1, {"c": null}]}'


def _as_shown(part: Part) -> Part:
    """These prompts write integers beyond 64 bits as floats, as their makers do."""
    if part.kind != "tool_call":
        return part
    return Part("tool_call", json.dumps(load(part.text)), name=part.name)


@pytest.mark.parametrize("name", NATIVE)
def test_rendered_turns_are_read_again(name: str) -> None:
    template, maker = NATIVE[name]

    @share(25)
    @given(laws.turns(maker, COVERED))
    def check(turn: Turn) -> None:
        before, written = laws.answer(template, maker, COVERED, turn)
        setup = laws.setup_of(maker, COVERED, before)
        shown = [_as_shown(part) for part in laws.wanted_of(turn)]
        wanted = laws.comparable(shown, exact=False)
        for pieces in ([written], list(written)):
            parts = laws.parts_of(laws.events_of(maker, setup, pieces))
            assert laws.comparable(parts, exact=False) == wanted

    check()


def test_a_call_says_its_types_itself() -> None:
    maker = dsml_parser(V4, "auto")
    assert read(f"so:\n\n{SECTION}", maker=maker) == [text("so:"), call("f", ARGUMENTS)]
    spaced = SECTION.replace("｜DSML｜tool_", "｜DSML｜").replace("｜DSML｜", "｜DSML｜ ")
    assert read(spaced, maker=dsml_parser(V41, "auto")) == [call("f", ARGUMENTS)]
    older = SECTION.replace("tool_calls", "function_calls")
    assert read(older, maker=dsml_parser(V32, "auto")) == [call("f", ARGUMENTS)]


def test_where_the_prompt_has_opened_the_section_its_calls_are_read() -> None:
    opened = Dialogue(
        ASKS,
        (ToolSpec("f"),),
        ToolChoice("required"),
        reasoning=ReasoningSettings("off"),
    )
    for template, maker in NATIVE.values():
        prompt = template.render(opened, 0.0).text
        assert prompt.endswith("calls>\n")
        assert maker.phase(prompt) == "content"
    body = SECTION.split("\n", 1)[1]
    assert read(body, maker=dsml_parser(V4, "auto")) == [call("f", ARGUMENTS)]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('name="a" string="false">nope<', '{"a": "nope"}'),
        ('name="a" string="false">007<', '{"a": "007"}'),
        ('name="a" string="true">7<', '{"a": "7"}'),
        ('name="a">7<', '{"a": 7}'),
        ('name="a" string="true"></｜DSML｜parameter> is the end<',
         '{"a": "</｜DSML｜parameter> is the end"}'),
    ],
)  # fmt: skip
def test_values_are_kept_as_they_were_said(written: str, arguments: str) -> None:
    answer = (
        f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter {written}'
        "/｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
    )
    assert read(answer, maker=dsml_parser(V4, "auto")) == [call("f", arguments)]


@pytest.mark.parametrize("has_fence", [True, False])
def test_sections_are_read_in_both_spellings(has_fence: bool) -> None:
    maker = section_parser("auto", has_fence=has_fence)
    begin, end = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
    fenced = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"
    plain = '<｜tool▁call▁begin｜>g<｜tool▁sep｜>{"a": "```"}<｜tool▁call▁end｜>'
    answer = f"ok{begin}{fenced}\n{plain}{end}"
    wanted = [text("ok"), call("f", "{}"), call("g", '{"a": "```"}')]
    assert read(answer, maker=maker) == wanted
    thought = read(f"hm</think>{answer}", maker=maker, phase="reasoning")
    assert thought == [reasoning("hm"), *wanted]


def test_a_call_that_was_cut_off_stays_so() -> None:
    maker = section_parser("auto", has_fence=False)
    start = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
    assert read(start + '{"a": "b', maker=maker) == [call("f", '{"a": "b', complete=False)]
    half = SECTION[: SECTION.index("x ") + 1]
    assert read(half, maker=dsml_parser(V4, "auto")) == [call("f", '{"a": "x', complete=False)]


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("deepseek_v3", section_parser("auto", has_fence=True)),
        ("deepseek_v31", section_parser("auto", has_fence=False)),
        ("deepseek_v4", dsml_parser(V4, "auto")),
    ],
)
def test_the_grammar_writes_what_is_read(name: str, maker: ParserMaker) -> None:
    grammar = maker.call_grammar((ToolSpec("f"), ToolSpec("g")))
    assert grammar is not None
    body = "" if name == "deepseek_v4" else "{}"
    calls = [f"{spelling.begin}{body}{spelling.end}" for spelling in grammar.calls]
    answer = f"{grammar.begin}{grammar.separator.join(calls)}{grammar.end}"
    assert answer.startswith(grammar.trigger)
    assert read(answer, maker=maker) == [call("f", "{}"), call("g", "{}")]


@pytest.mark.parametrize("template", [template for template, _ in NATIVE.values()])
def test_what_a_prompt_cannot_show_is_refused(template: Template) -> None:
    for dialogue in (
        Dialogue(()),
        Dialogue((Turn("user", (Image(url="u"),)),)),
        Dialogue((Turn("user", (Document(url="u"),)),)),
        Dialogue(ASKS, (ToolSpec("f", None, "{"),)),
        Dialogue(ASKS, (ToolSpec("f", None, '{"a": 1e999}'),)),
    ):
        with pytest.raises(RequestError):
            template.render(dialogue, 0.0)


def test_redacted_reasoning_and_free_form_calls_are_shown_as_far_as_they_can_be() -> None:
    turn = Turn(
        "assistant",
        (Reasoning("", redacted="x"), Text("a"), ToolCall("1", "f", "free", custom=True)),
    )
    dialogue = Dialogue((*ASKS, turn), (ToolSpec("f", custom=True),))
    shown = DeepseekV4Template().render(dialogue, 0.0).text
    assert '<think></think>a\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">' in shown
    assert 'name="input" string="true">free<' in shown


def test_the_plugins_are_installed() -> None:
    host = Host()
    for name in ("deepseek_v3", "deepseek_v31", "deepseek_v32", "deepseek_v4", "deepseek_v41"):
        assert name in host.parsers
        assert name in host.dialects
    assert json.dumps(sorted(n for n in host.templates if "deepseek" in n)) == (
        '["deepseek_v4", "deepseek_v41"]'
    )
