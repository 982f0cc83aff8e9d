"""The laws of every family, with the published Functionary templates."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tokenwire.plugins.dialects.functionary.maker import MessagesMaker, tagged_maker

TAGGED = laws.Covered("meetkai-functionary-medium-v3.1", thinks=False, trims="", end="<|eom_id|>")
MESSAGES = laws.Covered("meetkai-functionary-medium-v3.2", thinks=False, trims="")


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold_for_function_tags(law: laws.Law) -> None:
    law(tagged_maker(), TAGGED)


@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold_for_messages(law: laws.Law) -> None:
    law(MessagesMaker(), MESSAGES)
