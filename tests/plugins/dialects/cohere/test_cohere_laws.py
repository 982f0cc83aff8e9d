"""The laws of every family, with the published Cohere templates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import Reasoning, ToolCall, ToolSpec, Turn
from tokenwire.plugins.dialects.cohere.maker import cohere_maker, command_r_maker

SIMPLE = '{"type": "object", "properties": {"text": {"type": "string", "description": "any"}}}'
MODEL = "<|CHATBOT_TOKEN|>"
END = "<|END_OF_TURN_TOKEN|>"
R7B = laws.Covered(
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
    speaks=False,
    trims="",
    thought_trims="",
    head=MODEL,
    end=END,
)
NORTH = laws.Covered("Cohere2MoE", speaks=False, trims="", thought_trims="", head=MODEL, end=END)
R_PLUS = laws.Covered(
    "CohereForAI-c4ai-command-r-plus-tool_use",
    thinks=False,
    trims=None,
    exact=False,
    head=MODEL,
    end="\n<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Write",
    tools=tuple(ToolSpec(name, "Does it.", SIMPLE) for name in ("f", "get_tide")),
)
"""Its template cannot write a schema with objects in it."""


def before_calls_only(turn: Turn) -> Turn:
    """R7B's template shows reasoning only where calls follow."""
    if any(isinstance(part, ToolCall) for part in turn.parts):
        return turn
    return Turn("assistant", tuple(p for p in turn.parts if not isinstance(p, Reasoning)))


@pytest.mark.parametrize("covered", [R7B, NORTH], ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered) -> None:
    maker = cohere_maker()
    if covered is R7B:
        turns = laws.turns(maker, covered).map(before_calls_only)
        covered = replace(covered, turns=turns)
    law(maker, covered)


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold_for_command_r(law: laws.Law) -> None:
    law(command_r_maker(), R_PLUS)
