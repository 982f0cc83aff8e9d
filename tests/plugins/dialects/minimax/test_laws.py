"""The laws of every family, over the published templates of these."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tests.plugins.dialects.typed_turns import typed
from tokenwire.plugins.dialects.minimax.families import FAMILIES, M2

INSIDE = ("</parameter>", "</invoke>", "<parameter name=", "</minimax:tool_call>", "<item>")
COVERED = [
    (laws.Covered("MiniMax-M2", head="]~b]ai\n"), "minimax"),
    (laws.Covered("MiniMax-M3", trims="", thought_trims="", head="]~b]ai\n"), "minimax_m3"),
    (
        laws.Covered(
            "MiniMax-M1",
            thinks=False,
            speaks=False,
            trims=None,
            head="<beginning_of_sentence>ai name=assistant\n",
        ),
        "minimax_m1",
    ),
]
"""Templates, and the families that read them."""


@pytest.mark.parametrize(("covered", "family"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered, family: str) -> None:
    maker = FAMILIES[family].maker("auto")
    nulls = covered.template != "MiniMax-M3"
    law(maker, typed(maker, covered, inside=INSIDE, spelling=M2, nulls=nulls))
