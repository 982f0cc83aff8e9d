"""Results of parallel calls: one prompt, whether a protocol makes each a message or all one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tokenwire.core.dialogue import Dialogue, Text, ToolCall, ToolResult, ToolSpec, Turn
from tokenwire.core.ports.dialect import Template
from tokenwire.plugins.dialects.deepseek.template_v4 import DeepseekV4Template
from tokenwire.plugins.dialects.deepseek.template_v41 import DeepseekV41Template
from tokenwire.plugins.dialects.harmony.template import HarmonyTemplate
from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate
from tokenwire.plugins.dialects.plain.template import PlainTemplate

NATIVE = (
    ChatmlTemplate,
    DeepseekV4Template,
    DeepseekV41Template,
    HarmonyTemplate,
    PlainTemplate,
)
RESULTS = tuple(ToolResult(f"c{k}", (Text(f"<{k}>"),), name="f") for k in range(3))
BEFORE = (
    Turn("user", (Text("q"),)),
    Turn("assistant", (Text("I"), *(ToolCall(f"c{k}", "f", "{}") for k in range(3)))),
)
AFTER = (Turn("user", (Text("and?"),)),)
TOOLS = (ToolSpec("f", "d", '{"type":"object"}'),)


def rendered(template: Template, *turns: Turn) -> str:
    dialogue = Dialogue((*BEFORE, *turns), tools=TOOLS)
    return "".join(segment.text for segment in template.render(dialogue, 0.0).segments)


@pytest.mark.parametrize("make", NATIVE)
@pytest.mark.parametrize("after", [(), AFTER], ids=["last", "inside"])
def test_how_results_are_cut_into_turns_changes_no_prompt(
    make: Callable[[], Template], after: tuple[Turn, ...]
) -> None:
    template = make()
    each = rendered(template, *(Turn("tool", (result,)) for result in RESULTS), *after)
    assert rendered(template, Turn("tool", RESULTS), *after) == each
    assert rendered(template, Turn("tool", RESULTS[:2]), Turn("tool", RESULTS[2:]), *after) == each
    assert all(each.count(f"<{k}>") == 1 for k in range(3))
