"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "qwen3_coder": "Qwen3-Coder, Qwen3.5, Nemotron 3 Nano",
    "step3p5": "StepFun 3.5",
    "seed_oss": "Seed-OSS",
    "minicpm5": "MiniCPM5",
}
all_families: Final = families_in("tokenwire.plugins.dialects.qwen3_coder.families")
