"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.typed_turns import Shown, check_answers
from tokenwire.plugins.dialects.minimax.families import FAMILIES

INSIDE = ("</parameter>", "</invoke>", '<parameter name="', "</minimax:tool_call>", "<item>")
M1 = "<beginning_of_sentence>ai name=assistant\n"
TEMPLATES = {
    "MiniMax-M2": ("minimax", Shown("]~b]ai\n", "[e~[")),
    "MiniMax-M3": ("minimax_m3", Shown("]~b]ai\n", "[e~[", nulls=False, strips="")),
    "MiniMax-M1": ("minimax_m1", Shown(M1, "<end_of_sentence>", False, False, strips=None)),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    family, shown = TEMPLATES[name]
    check_answers(FAMILIES[family], name, shown, inside=INSIDE)
