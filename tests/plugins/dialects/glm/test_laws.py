"""The laws of every family, over the published templates of these."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tests.plugins.dialects.typed_turns import typed
from tokenwire.plugins.dialects.glm.families import FAMILIES, SPELLING

INSIDE = ("</arg_value>", "</tool_call>", "<tool_call>", "<arg_key>", "</arg_key>")
BAR = "\uff5c"
COVERED = [
    (laws.Covered("GLM-4.6", trims=None, thought_trims=None, head="<|assistant|>"), "glm"),
    (laws.Covered("GLM-4.7-Flash", trims=None, thought_trims=None, head="<|assistant|>"), "glm"),
    (laws.Covered("inclusionai-ling-3.0-flash", head="<role>ASSISTANT</role>"), "ling3"),
    (
        laws.Covered("poolside-Laguna-S-2.1", trims="", thought_trims="", head="<assistant>"),
        "laguna",
    ),
    (
        laws.Covered("poolside-Laguna-XS-2.1", trims=None, thought_trims=None, head="<assistant>"),
        "laguna_xs",
    ),
    (
        laws.Covered("poolside-Laguna-XS.2", trims=None, thought_trims=None, head="<assistant>"),
        "laguna_xs",
    ),
    (laws.Covered("Spark2.5", trims="", thought_trims="", head="<|Bot|>"), "spark"),
    (
        laws.Covered(
            "tencent-Hy3",
            trims="",
            thought_trims="",
            head=f"<{BAR}hy_Assistant:opensource{BAR}>",
            end=f"<{BAR}hy_eos:opensource{BAR}>",
        ),
        "hunyuan",
    ),
]
"""Templates, and the families that read them."""


@pytest.mark.parametrize(("covered", "family"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered, family: str) -> None:
    maker = FAMILIES[family].maker("auto")
    law(maker, typed(maker, covered, inside=INSIDE, spelling=SPELLING))
