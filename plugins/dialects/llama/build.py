"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "json_array": "answers that are a JSON list of calls",
    "llama3_json": "Llama 3.1, 3.2, 3.3",
    "llama4": "Llama 4",
}
all_families: Final = families_in("tokenwire.plugins.dialects.llama.families")
