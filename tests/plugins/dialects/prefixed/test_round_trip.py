"""What published templates write that show answers only in part or by further variables."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.written_turns import Written, check_written
from tokenwire.plugins.dialects.prefixed.families import FAMILIES

TEMPLATES = {
    # In an answer's own prompt the reasoning is open; the same answer as history opens none.
    "Apriel-1.6-15b-Thinker-fixed": (
        "apriel",
        Written("<|begin_assistant|>\n", "", thinks=True, phase="reasoning", strips=None),
    ),
    "NVIDIA-Nemotron-Nano-v2": (
        "nemotron_nano_v2",
        Written("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n", strips=None, follows=True),
    ),
    "fireworks-ai-llama-3-firefunction-v2": (
        "firefunction",
        Written(
            "assistant<|end_header_id|>\n\n",
            "<|eot_id|>",
            strips=None,
            after=" ",
            args=(("functions", "[]"), ("datetime", "today")),
        ),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    family, shown = TEMPLATES[name]
    check_written(FAMILIES[family], name, shown)
