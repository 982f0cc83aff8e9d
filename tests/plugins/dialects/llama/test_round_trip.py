"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.written_turns import Written, check_written
from tokenwire.plugins.dialects.llama.families import FAMILIES

SHOWN = Written("assistant<|end_header_id|>\n\n", "<|eot_id|>", speaks=False, calls=1, strips=None)


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "meta-llama-Llama-3.3-70B-Instruct",
    ],
)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    check_written(FAMILIES["llama3_json"], name, SHOWN)
