"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "apriel": "Apriel 1.5, 1.6",
    "firefunction": "Firefunction 2",
    "gigachat": "GigaChat 3, 3.1",
    "granite": "Granite 3.0 to 3.3",
    "granite_20b": "Granite 20B for functions",
    "internlm": "InternLM 2.5, 3",
    "jamba": "Jamba, Hunyuan A13B",
    "longcat": "LongCat Flash",
    "nemotron_nano_v2": "Nemotron Nano v2",
    "phi4": "Phi-4-mini",
    "solar": "Solar Open",
}
all_families: Final = families_in("tokenwire.plugins.dialects.prefixed.families")
