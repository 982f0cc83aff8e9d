"""The laws of every family, for answers that a response template describes."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tests.plugins.dialects.generic.templates import GRANITE, QWEN
from tokenwire.plugins.dialects.generic.maker import GenericMaker
from tokenwire.plugins.dialects.generic.spec import read_template

# Response templates take white space off both ends of text and reasoning.
COVERED = {
    "qwen3": (QWEN, laws.Covered("Qwen-Qwen3-0.6B", trims=None, thought_trims=None)),
    "qwen2.5": (QWEN, laws.Covered("Qwen-Qwen2.5-7B-Instruct", thinks=False, trims=None)),
    "granite": (GRANITE, laws.Covered("ibm-granite-granite-4.0", thinks=False, trims=None)),
}


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, name: str) -> None:
    template, covered = COVERED[name]
    law(GenericMaker(read_template(template)), covered)
