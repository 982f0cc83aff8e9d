"""The laws of every family, over the published templates of these."""

from __future__ import annotations

import pytest

from tests.plugins.dialects import laws
from tests.plugins.dialects.typed_turns import typed
from tokenwire.plugins.dialects.qwen3_coder.families import FAMILIES, MINICPM, QWEN, SEED

INSIDE = ("</parameter>", "</tool_call>", "<tool_call>", "<parameter=", "</function>", "</param>")
SPELLINGS = {"qwen3_coder": QWEN, "step3p5": QWEN, "seed_oss": SEED, "minicpm5": MINICPM}
CHATML = "<|im_start|>assistant\n"
COVERED = [
    (laws.Covered("Qwen3-Coder", thinks=False, trims=None, head=CHATML), "qwen3_coder"),
    (laws.Covered("Qwen3.5-4B", trims=None, thought_trims=None, head=CHATML), "qwen3_coder"),
    (
        laws.Covered(
            "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", trims=None, thought_trims=None, head=CHATML
        ),
        "qwen3_coder",
    ),
    (laws.Covered("StepFun3.5-Flash", head=CHATML), "step3p5"),
    (
        laws.Covered(
            "ByteDance-Seed-OSS", trims=None, thought_trims=None, head="<seed:bos>assistant\n"
        ),
        "seed_oss",
    ),
    (laws.Covered("openbmb-MiniCPM5-1B", head=CHATML), "minicpm5"),
]
"""Templates, and the families that read them."""


@pytest.mark.parametrize(("covered", "family"), COVERED, ids=laws.name_of)
@pytest.mark.parametrize("law", laws.LAWS, ids=laws.name_of)
def test_the_laws_hold(law: laws.Law, covered: laws.Covered, family: str) -> None:
    maker = FAMILIES[family].maker("auto")
    law(maker, typed(maker, covered, inside=INSIDE, spelling=SPELLINGS[family]))
