"""Our dialects through the kit, with their own templates and with published ones."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.reading import template_source
from tokenwire.core.dialogue import Reasoning, Text, ToolCall, Turn
from tokenwire.core.host import Host
from tokenwire.core.testing.dialect_kit import (
    LAWS,
    conform,
    conform_parser,
    conform_template,
    run_dialect_kit,
)
from tokenwire.core.testing.dialect_probe import ANSWERS
from tokenwire.plugins.dialects.hermes.maker import hermes_maker
from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate
from tokenwire.plugins.dialects.plain.parser import PlainMaker

CALLS = (
    Turn("assistant", (ToolCall("c1", "look_up", '{"a": "b </tool_call> \\n c"}'),)),
    Turn(
        "assistant",
        (ToolCall("c1", "look_up", "{}"), ToolCall("c2", "look_up", '{"a": [1, null, {"b": ""}]}')),
    ),
)
MIXED = (Turn("assistant", (Text("I will look.\n"), ToolCall("c1", "look_up", '{"a": "b"}'))),)
THINKING = (
    Turn("assistant", (Reasoning("hm\n\n  so"), Text("it is four"))),
    Turn("assistant", (Reasoning("hm"), ToolCall("c1", "look_up", '{"a": "b"}'))),
)


@pytest.mark.parametrize(
    ("name", "unchecked"),
    [
        ("hermes", {"known_stops"}),
        ("think", {"known_stops", "nothing_repaired"}),
        ("plain", {"known_stops", "nothing_repaired"}),
    ],
)
def test_a_dialect_conforms_as_it_is_installed(name: str, unchecked: set[str]) -> None:
    assert set(conform(Host(), name)) == set(LAWS) - unchecked


def test_half_a_dialect_conforms_as_it_is_installed() -> None:
    assert "no_special_from_a_client" in conform_template(Host(), "chatml")
    held = conform_parser(Host(), "think")
    assert "never_raises" in held
    assert not {"nothing_repaired", "text_when_told", "round_trip"} & set(held)


def test_chatml_and_hermes_conform_with_all_that_they_can_say() -> None:
    answers = (*ANSWERS, *CALLS, *MIXED, *THINKING)
    run_dialect_kit(ChatmlTemplate(), hermes_maker(), answers=answers)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("Qwen-Qwen3-0.6B", (*CALLS, *MIXED, *THINKING)),
        ("Qwen-Qwen2.5-7B-Instruct", (*CALLS, *MIXED)),
        ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", CALLS),
    ],
)
def test_published_templates_conform_with_hermes(name: str, answers: tuple[Turn, ...]) -> None:
    template = JinjaTemplate(template_source(name), Settings())
    run_dialect_kit(template, hermes_maker(), answers=(*ANSWERS, *answers), examples=40)


def test_a_template_or_a_parser_alone_conforms() -> None:
    source = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}assistant:"
    run_dialect_kit(JinjaTemplate(source, Settings()), None)
    run_dialect_kit(None, PlainMaker())
