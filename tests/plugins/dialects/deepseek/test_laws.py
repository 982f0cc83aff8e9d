"""The laws of every family, for DeepSeek's, over their published templates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import ToolCall, Turn
from tokenwire.core.ports.dialect import ParserMaker
from tokenwire.plugins.dialects.deepseek.parsers import dsml_parser, section_parser
from tokenwire.plugins.dialects.deepseek.spelling import ASSISTANT, EOS, V4, V32

MAKERS = {
    "v3": section_parser("auto", has_fence=True),
    "v31": section_parser("auto", has_fence=False),
    "v32": dsml_parser(V32, "auto"),
    "v4": dsml_parser(V4, "auto"),
}
THINKS = {"thinking": True}
LLAMA = laws.Covered(
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", thinks=False, speaks=False, head=ASSISTANT
)


def _with_two_calls(turn: Turn) -> Turn:
    """This template closes the section behind every call but the first."""
    parts = [part for part in turn.parts if isinstance(part, ToolCall)]
    return Turn("assistant", tuple((parts * 2)[:2])) if parts else turn


COVERED = {
    "v3": (
        replace(LLAMA, turns=laws.turns(MAKERS["v3"], LLAMA).map(_with_two_calls), calls=0),
        # It shows a call's missing text as an answer of its own.
        laws.Covered(
            "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
            thinks=False,
            speaks=False,
            head=ASSISTANT,
            end=f"{EOS}{ASSISTANT}{EOS}",
        ),
        laws.Covered("llama-cpp-deepseek-r1", thinks=False, speaks=False, head=ASSISTANT),
    ),
    "v31": (laws.Covered("deepseek-ai-DeepSeek-V3.1", thinks=False),),
    "v32": (laws.Covered("deepseek-ai-DeepSeek-V3.2", exact=False, args=THINKS),),
    "v4": (
        laws.Covered("deepseek-ai-DeepSeek-V4", exact=False, args=THINKS),
        laws.Covered("deepseek-ai-DeepSeek-V4-Flash-0731", exact=False, args=THINKS),
    ),
}
CASES = [(MAKERS[name], covered) for name, all in COVERED.items() for covered in all]


@pytest.mark.parametrize(("maker", "covered"), CASES, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, maker: ParserMaker, covered: laws.Covered) -> None:
    law(maker, covered)
