"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("NAMES", "all_families")

NAMES: Final[Mapping[str, str]] = {
    "glm": "GLM 4.5 to 4.7",
    "ling3": "Ling 3",
    "laguna": "Poolside Laguna",
    "laguna_xs": "Poolside Laguna XS.2",
    "spark": "Spark 2.5",
    "hunyuan": "Tencent Hy3",
}


def all_families() -> Mapping[str, Family]:
    from tokenwire.plugins.dialects.glm.families import FAMILIES

    return FAMILIES
