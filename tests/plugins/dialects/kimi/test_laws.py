"""The laws of every family, for Kimi's, over their published templates."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.plugins.dialects import laws
from tokenwire.core.dialogue import Reasoning, ToolCall, Turn
from tokenwire.core.ports.dialect import ParserMaker
from tokenwire.plugins.dialects.kimi.parsers import k2_parser, k3_parser

K2, K3 = k2_parser("auto"), k3_parser("auto")


def _shown(turn: Turn) -> Turn:
    """Reasoning is shown only where calls follow it."""
    if any(isinstance(part, ToolCall) for part in turn.parts):
        return turn
    return Turn("assistant", tuple(p for p in turn.parts if not isinstance(p, Reasoning)))


THINKING = laws.Covered("Kimi-K2-Thinking")
CASES = [
    (K2, laws.Covered("Kimi-K2-Instruct", thinks=False)),
    (K2, laws.Covered("moonshotai-Kimi-K2", thinks=False)),
    (K2, replace(THINKING, turns=laws.turns(K2, THINKING).map(_shown))),
    (
        K3,
        laws.Covered("Kimi-K3", exact=False, end="<|close|>message", trims="", thought_trims=""),
    ),
]


@pytest.mark.parametrize(("maker", "covered"), CASES, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, maker: ParserMaker, covered: laws.Covered) -> None:
    law(maker, covered)
