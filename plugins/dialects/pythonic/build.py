"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "lfm2": "LFM2, LFM2.5",
    "olmo3": "OLMo 3",
    "pythonic": "answers that are a Python list of calls",
}


def all_families() -> Mapping[str, Family]:
    from tokenwire.plugins.dialects.pythonic.families import FAMILIES

    return FAMILIES
