"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "lfm2": "LFM2, LFM2.5",
    "olmo3": "OLMo 3",
    "pythonic": "answers that are a Python list of calls",
}
all_families: Final = families_in("tokenwire.plugins.dialects.pythonic.families")
