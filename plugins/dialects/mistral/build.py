"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "mistral": "Mistral Small 3.2, Ministral 3, Devstral",
    "mistral_json": "Mistral 7B v0.3, Nemo, Large 2",
}


def all_families() -> Mapping[str, Family]:
    from tokenwire.plugins.dialects.mistral.families import FAMILIES

    return FAMILIES
