"""The template plugin: where it finds its source, what it tells a template, how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.dialects.reading import template_source
from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.dialogue import Dialogue, ReasoningSettings, Text, ToolSpec, Turn
from tokenwire.core.errors import ConfigError, RequestError
from tokenwire.core.host import Host, lone_services
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

HELLO = Dialogue(turns=(Turn("user", (Text("hi"),)),))
NOW = 1_700_000_000.0


def render(source: str, dialogue: Dialogue = HELLO, **settings: object) -> str:
    return JinjaTemplate(source, Settings(**settings)).render(dialogue, NOW).text


def build(folder: Path | None, **settings: object):
    from msgspec.structs import replace

    services = replace(lone_services(), checkpoint=Checkpoint(folder) if folder else None)
    return Host().templates.build("jinja", settings, services, "template.jinja")


def test_the_source_is_given_or_a_file_or_the_checkpoints(tmp_path: Path) -> None:
    config = {"chat_template": "C{{ bos_token }}{{ eos_token }}{{ messages[0].content }}",
              "bos_token": {"content": "<s>"}, "eos_token": "</s>"}  # fmt: skip
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert build(tmp_path).render(HELLO, NOW).text == "C<s></s>hi"
    (tmp_path / "chat_template.jinja").write_text("F{{ messages[0].content }}")
    assert build(tmp_path).render(HELLO, NOW).text == "Fhi"
    (tmp_path / "other.jinja").write_text("O{{ messages[0].content }}")
    assert build(tmp_path, path=str(tmp_path / "other.jinja")).render(HELLO, NOW).text == "Ohi"
    own = build(tmp_path, source="S{{ messages[0].content }}")
    assert own.render(HELLO, NOW).text == "Shi"
    assert own.source == "S{{ messages[0].content }}"


def test_no_source_is_a_configuration_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no chat template"):
        build(tmp_path)
    with pytest.raises(ConfigError, match="no chat template"):
        build(None)
    with pytest.raises(ConfigError, match=r"missing\.jinja"):
        build(None, path=str(tmp_path / "missing.jinja"))


def test_blocks_are_trimmed_and_the_time_is_the_one_given() -> None:
    source = (
        "{% for m in messages %}\n  {% if m.role == 'user' %}\n"
        "U:{{ m.content }}\n  {% endif %}\n{% endfor %}"
    )
    assert render(source) == "U:hi\n"
    assert render("{{ messages[0].content }}{{ strftime_now('%d %b %Y') }}") == "hi14 Nov 2023"
    assert render("{{ messages[0].content }}{{ pad_token }}{{ add_generation_prompt }}") == "hiTrue"


@pytest.mark.parametrize(
    ("reasoning", "text"),
    [
        (ReasoningSettings(), "--"),
        (ReasoningSettings("on"), "True--"),
        (ReasoningSettings("off"), "False--0"),
        (ReasoningSettings("adaptive"), "--"),
        (ReasoningSettings("on", effort="high", budget=99), "True-high-99"),
        (ReasoningSettings(effort="none"), "False--0"),
        (ReasoningSettings("off", effort="high", budget=99), "False--0"),
    ],
)
def test_reasoning_is_told_in_the_variables_that_the_template_reads(reasoning, text) -> None:
    read = "{{ enable_thinking }}-{{ reasoning_effort }}-{{ thinking_budget }}"
    dialogue = Dialogue(turns=HELLO.turns, reasoning=reasoning)
    assert render("{{ messages[0].content }}" + read, dialogue) == f"hi{text}"


def test_qwen3_opens_no_reasoning_when_it_is_off() -> None:
    template = JinjaTemplate(template_source("Qwen-Qwen3-0.6B"), Settings())
    off = Dialogue(turns=HELLO.turns, reasoning=ReasoningSettings("off"))
    assert template.render(off, NOW).text.endswith("<think>\n\n</think>\n\n")
    args = Dialogue(turns=HELLO.turns, template_args={"enable_thinking": False})
    assert template.render(args, NOW).text == template.render(off, NOW).text


def test_a_requests_own_arguments_reach_the_template_and_win() -> None:
    source = "{{ messages[0].content }}{{ enable_thinking }}{{ mine }}"
    dialogue = Dialogue(
        turns=HELLO.turns,
        reasoning=ReasoningSettings("on"),
        template_args={"enable_thinking": False, "mine": 7},
    )
    assert render(source, dialogue) == "hiFalse7"


@pytest.mark.parametrize(
    "name", ["messages", "tools", "chat_template", "tokenize", "add_generation_prompt",
             "bos_token", "raise_exception", "strftime_now", "the meter", "_x"]
)  # fmt: skip
def test_a_request_cannot_replace_what_is_the_servers(name: str) -> None:
    dialogue = Dialogue(turns=HELLO.turns, template_args={name: "x"})
    with pytest.raises(RequestError, match="cannot be set by a request"):
        render("{{ messages[0].content }}", dialogue)


def test_errors_of_a_template_come_out_without_its_insides() -> None:
    for source in ("{{ 1 / 0 }}", "{{ messages.x.y }}", "{{ 'a' + 1 }}", "{{ nothing() }}"):
        with pytest.raises(RequestError, match="cannot render this conversation") as caught:
            render(source)
        assert caught.value.status == 400


def test_output_is_bounded_by_the_settings() -> None:
    with pytest.raises(RequestError, match="1000"):
        render("{{ messages[0].content * 600 }}", max_output=1000)
    assert len(render("{{ messages[0].content * 400 }}", max_output=1000)) == 800


def test_no_turns_and_nothing_to_continue_are_refused() -> None:
    with pytest.raises(RequestError, match="at least one message"):
        render("x", Dialogue(turns=()))
    with pytest.raises(RequestError, match="can be continued"):
        render("{{ messages[0].content }}", Dialogue(turns=HELLO.turns, continue_final=True))
    turns = (*HELLO.turns, Turn("assistant", (Text("The answer"),)))
    with pytest.raises(RequestError, match="cannot continue"):
        render("{{ messages[0].content }}", Dialogue(turns=turns, continue_final=True))


def test_a_continued_message_may_hold_the_tag_that_marks_its_end() -> None:
    source = "{% for m in messages %}{{ m.content }}|{% endfor %}"
    for text in ("CONTINUE\ufdd0HERE", "CONTINUE\ufdd0HERE\ufdd0 x", "a\x00b"):
        turns = (*HELLO.turns, Turn("assistant", (Text(text),)))
        assert render(source, Dialogue(turns=turns, continue_final=True)) == f"hi|{text}"


def test_text_that_no_tokenizer_could_take_is_refused() -> None:
    schema = '{"type": "object", "properties": {"a": {"description": "\\ud800"}}}'
    dialogue = Dialogue(turns=HELLO.turns, tools=(ToolSpec("f", "d", schema),))
    with pytest.raises(RequestError, match="lone surrogate"):
        render("{{ messages[0].content }}{{ tools | tojson }}", dialogue)


def test_a_nul_and_a_private_code_point_come_out_as_they_went_in() -> None:
    text = "before\x00after\U000f0000é"
    dialogue = Dialogue(turns=(Turn("user", (Text(text),)),))
    assert text in render("{{ messages[0].content }}{{ messages | tojson }}", dialogue)
