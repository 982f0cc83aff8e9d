"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "qwen3_coder": "Qwen3-Coder, Qwen3.5, Nemotron 3 Nano",
    "step3p5": "StepFun 3.5",
    "seed_oss": "Seed-OSS",
    "minicpm5": "MiniCPM5",
}


def all_families() -> Mapping[str, Family]:
    from tokenwire.plugins.dialects.qwen3_coder.families import FAMILIES

    return FAMILIES
