"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "minimax": "MiniMax M2",
    "minimax_m3": "MiniMax M3",
    "minimax_m1": "MiniMax M1",
}
all_families: Final = families_in("tokenwire.plugins.dialects.minimax.families")
