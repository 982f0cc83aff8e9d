"""The laws of every family, with the published templates of the Mistral models."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.mistral.families import FAMILIES

COVERED = [
    ("mistral", laws.Covered("mistralai-Ministral-3-14B-Reasoning-2512", thinks=False, trims="")),
    ("mistral", laws.Covered("unsloth-mistral-Devstral-Small-2507", thinks=False, trims="")),
    (
        "mistral",
        laws.Covered("Mistral-Small-3.2-24B-Instruct-2506", thinks=False, speaks=False, trims=""),
    ),
    (
        "mistral_json",
        laws.Covered("mistralai-Mistral-Nemo-Instruct-2407", thinks=False, speaks=False, trims=""),
    ),
]


@pytest.mark.parametrize(("family", "covered"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, family: str, covered: laws.Covered) -> None:
    law(FAMILIES[family].maker("auto"), covered)
