"""The laws of every family, with the published templates of the Llama models."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.llama.families import FAMILIES

COVERED = [
    (
        "llama3_json",
        laws.Covered(name, thinks=False, speaks=False, calls=1, trims=None),
    )
    for name in (
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "meta-llama-Llama-3.3-70B-Instruct",
    )
]


@pytest.mark.parametrize(("family", "covered"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, family: str, covered: laws.Covered) -> None:
    law(FAMILIES[family].maker("auto"), covered)
