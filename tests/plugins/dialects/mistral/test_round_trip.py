"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.written_turns import Written, check_written
from tokenwire.plugins.dialects.mistral.families import FAMILIES

TEMPLATES = {
    "Mistral-Small-3.2-24B-Instruct-2506": (
        "mistral",
        Written("[/INST]", "</s>", speaks=False, strips=""),
    ),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("mistral", Written("[/INST]", "</s>", strips="")),
    "mistralai-Mistral-Nemo-Instruct-2407": (
        "mistral_json",
        Written("[/INST]", "</s>", speaks=False, strips=""),
    ),
    "unsloth-mistral-Devstral-Small-2507": ("mistral", Written("[/INST]", "</s>", strips="")),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    family, shown = TEMPLATES[name]
    check_written(FAMILIES[family], name, shown)
