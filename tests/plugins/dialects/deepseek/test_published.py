"""Our V4 template beside the published Jinja ones: where they agree, and the list of where not."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.dialect_pages import check_dialects_page
from tests.plugins.dialects.reading import template_source
from tokenwire.core.dialect_names import Signs, pick
from tokenwire.core.dialogue import (
    Dialogue,
    Reasoning,
    ReasoningSettings,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from tokenwire.core.host import Host, lone_services
from tokenwire.plugins.dialects.deepseek.build import MARKS
from tokenwire.plugins.dialects.deepseek.template_v4 import DeepseekV4Template
from tokenwire.plugins.dialects.jinja.settings import Settings
from tokenwire.plugins.dialects.jinja.template import JinjaTemplate

NAMES = ("deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731")
BOS = {"bos_token": "<｜begin▁of▁sentence｜>"}
TOOLS = (ToolSpec("f", "d", '{"type": "object"}'),)
SYSTEM = Turn("system", (Text("Be kind."),))
ASKED = Turn("user", (Text("one"),))
SAID = Turn("assistant", (Reasoning("hm"), Text("two")))
CALLED = Turn("assistant", (Reasoning("hm"), ToolCall("1", "f", '{"a": "b", "c": [1.5]}')))
EMPTY = Turn("assistant", (ToolCall("1", "f", "{}"),))
ANSWERED = Turn("tool", (ToolResult("1", (Text("r"),)),))
ON, OFF = ReasoningSettings("on", "low"), ReasoningSettings("off")


def both(name: str, dialogue: Dialogue) -> tuple[str, str]:
    published = JinjaTemplate(template_source(name), Settings(), BOS)
    return published.render(dialogue, 0.0).text, DeepseekV4Template().render(dialogue, 0.0).text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "dialogue",
    [
        Dialogue((ASKED,), reasoning=OFF),
        Dialogue((ASKED,), reasoning=ON),
        Dialogue((SYSTEM, ASKED, SAID, ASKED), reasoning=OFF),
        Dialogue((SYSTEM, ASKED, SAID, ASKED), reasoning=ON),
        Dialogue((SYSTEM, ASKED, CALLED, ANSWERED, SAID, ASKED), TOOLS, reasoning=ON),
        Dialogue((SYSTEM, ASKED, CALLED, ANSWERED), TOOLS, reasoning=OFF),
        Dialogue((ASKED, ASKED, SYSTEM), reasoning=ON),
    ],
)
def test_they_agree_on_most_conversations(name: str, dialogue: Dialogue) -> None:
    published, ours = both(name, dialogue)
    assert published == ours


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("dialogue", "theirs", "ours"),
    [
        (Dialogue((ASKED,)), "one<｜Assistant｜></think>", "one<｜Assistant｜><think>"),
        (Dialogue((ASKED,), TOOLS, reasoning=OFF), "sentence｜>## T", "sentence｜>\n\n## T"),
        (Dialogue((ASKED, EMPTY), TOOLS, reasoning=OFF), '"f">\n\n</', '"f">\n</'),
        (
            Dialogue((ASKED, CALLED, ANSWERED, SAID, ASKED), reasoning=ON),
            "<think>hm</think>two",
            "<｜Assistant｜></think>two",
        ),
        (
            Dialogue((ASKED, Turn("user", (ToolResult("1", (Text("r"),)),))), reasoning=ON),
            "one\n\n<tool_result>",
            "one<｜User｜><tool_result>",
        ),
    ],
)
def test_they_differ_where_the_docs_say(
    name: str, dialogue: Dialogue, theirs: str, ours: str
) -> None:
    published, own = both(name, dialogue)
    assert theirs in published
    assert theirs not in own
    assert ours in own
    assert ours not in published


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek_v3"),
        ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3"),
        ("llama-cpp-deepseek-r1", "deepseek_v3"),
        ("deepseek-ai-DeepSeek-V3.1", "deepseek_v31"),
        ("deepseek-ai-DeepSeek-V3.2", "deepseek_v32"),
        ("deepseek-ai-DeepSeek-V4", "deepseek_v4"),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", "deepseek_v4"),
        ("Kimi-K2-Instruct", "kimi"),
        ("moonshotai-Kimi-K2", "kimi"),
        ("Kimi-K2-Thinking", "kimi"),
        ("Kimi-K3", "kimi_k3"),
    ],
)
def test_auto_picks_the_family_by_its_template(name: str, family: str) -> None:
    host = Host()
    dialects = [host.dialects.build(found, {}, lone_services()) for found in host.dialects]
    assert pick("auto", Signs(template_source(name)), dialects=dialects)[0] == family


def test_the_page_says_what_the_code_does() -> None:
    check_dialects_page("deepseek", tuple(MARKS))
