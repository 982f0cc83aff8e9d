"""The laws of every family, with the published templates of JSON calls behind markers."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.prefixed.families import FAMILIES

COVERED = [
    ("apriel", laws.Covered("unsloth-Apriel-1.5", thinks=False)),
    (
        "apriel",
        laws.Covered("Apriel-1.6-15b-Thinker-fixed", thinks=False, head="<|begin_assistant|>\n"),
    ),
    ("gigachat", laws.Covered("GigaChat3-10B-A1.8B", thinks=False, calls=1, trims="")),
    ("gigachat", laws.Covered("GigaChat3.1-10B-A1.8B", thinks=False, calls=1, trims="")),
    ("granite", laws.Covered("ibm-granite-granite-3.3-2B-Instruct", thinks=False, calls=0)),
    (
        "solar",
        laws.Covered(
            "upstage-Solar-Open-100B",
            thinks=False,
            speaks=False,
            trims="",
            end="<|begin|>assistant",
        ),
    ),
]


@pytest.mark.parametrize(("family", "covered"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, family: str, covered: laws.Covered) -> None:
    law(FAMILIES[family].maker("auto"), covered)


def test_no_client_makes_a_marker_of_firefunction() -> None:
    """Its template writes its tools from arguments of its own, and calls of history as text."""
    args = {"datetime": "today", "functions": "[]"}
    covered = laws.Covered("fireworks-ai-llama-3-firefunction-v2", args=args)
    laws.no_client_makes_a_marker(FAMILIES["firefunction"].maker("auto"), covered)
