"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "minimax": "MiniMax M2",
    "minimax_m3": "MiniMax M3",
    "minimax_m1": "MiniMax M1",
}


def all_families() -> Mapping[str, Family]:
    from tokenwire.plugins.dialects.minimax.families import FAMILIES

    return FAMILIES
