"""What a published template of these families writes, the parser reads as that answer again."""

from __future__ import annotations

import pytest

from tests.plugins.dialects.typed_turns import Shown, check_answers
from tokenwire.plugins.dialects.qwen3_coder.families import FAMILIES

CHATML = ("<|im_start|>assistant\n", "<|im_end|>")
INSIDE = ("</parameter>", "</tool_call>", "<tool_call>", "<parameter=", "</function>", "</param>")
TEMPLATES = {
    "Qwen3-Coder": ("qwen3_coder", Shown(*CHATML, thinks=False, strips=None)),
    "Qwen3.5-4B": ("qwen3_coder", Shown(*CHATML, strips=None)),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("qwen3_coder", Shown(*CHATML, strips=None)),
    "StepFun3.5-Flash": ("step3p5", Shown(*CHATML)),
    "ByteDance-Seed-OSS": ("seed_oss", Shown("<seed:bos>assistant\n", "<seed:eos>", strips=None)),
    "openbmb-MiniCPM5-1B": ("minicpm5", Shown(*CHATML)),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_answer_survives_rendering_and_parsing(name: str) -> None:
    family, shown = TEMPLATES[name]
    check_answers(FAMILIES[family], name, shown, inside=INSIDE)
