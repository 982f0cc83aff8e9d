"""The laws of every family, with the published Apertus template."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.apertus.maker import apertus_maker

COVERED = laws.Covered("Apertus-8B-Instruct", thinks=False, trims="")


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law) -> None:
    law(apertus_maker(), COVERED)
