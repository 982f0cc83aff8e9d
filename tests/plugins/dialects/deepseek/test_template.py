"""Our DeepSeek V4 and V4.1 templates write what deepseek-recipe writes, to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.plugins.dialects.deepseek.oracle import dialogues, rendered
from tokenwire.core.dialogue import Dialogue
from tokenwire.plugins.dialects.deepseek.template_v4 import DeepseekV4Template
from tokenwire.plugins.dialects.deepseek.template_v41 import DeepseekV41Template

TEMPLATES = {"deepseek_v4": DeepseekV4Template(), "deepseek_v41": DeepseekV41Template()}


@pytest.mark.parametrize("name", TEMPLATES)
@given(dialogue=dialogues())
def test_rendering_equals_the_makers(name: str, dialogue: Dialogue) -> None:
    assert TEMPLATES[name].render(dialogue, 0.0).text == rendered(name, dialogue)
