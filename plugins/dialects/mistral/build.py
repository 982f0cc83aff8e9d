"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "mistral": "Mistral Small 3.2, Ministral 3, Devstral",
    "mistral_json": "Mistral 7B v0.3, Nemo, Large 2",
}
all_families: Final = families_in("tokenwire.plugins.dialects.mistral.families")
