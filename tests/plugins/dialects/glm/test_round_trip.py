"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.typed_turns import Shown, check_answers
from tokenwire.plugins.dialects.glm.families import FAMILIES

INSIDE = ("</arg_value>", "</tool_call>", "<tool_call>", "<arg_key>", "</arg_key>")
TEMPLATES = {
    "GLM-4.6": ("glm", Shown("<|assistant|>", "<|assistant|>", strips=None)),
    "GLM-4.7-Flash": ("glm", Shown("<|assistant|>", "<|assistant|>", strips=None)),
    "inclusionai-ling-3.0-flash": ("ling3", Shown("<role>ASSISTANT</role>", "<|role_end|>")),
    "poolside-Laguna-S-2.1": ("laguna", Shown("<assistant>", "</assistant>", strips="")),
    "poolside-Laguna-XS-2.1": ("laguna_xs", Shown("<assistant>", "\n</assistant>", strips=None)),
    "poolside-Laguna-XS.2": ("laguna_xs", Shown("<assistant>", "\n</assistant>", strips=None)),
    "Spark2.5": ("spark", Shown("<|Bot|>", "<｜end▁of▁sentence｜>", strips="")),  # noqa: RUF001
    "tencent-Hy3": (
        "hunyuan",
        Shown("<｜hy_Assistant:opensource｜>", "<｜hy_eos:opensource｜>", strips=""),  # noqa: RUF001
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    family, shown = TEMPLATES[name]
    check_answers(FAMILIES[family], name, shown, inside=INSIDE)
