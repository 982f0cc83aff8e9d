"""Names the families of this plugin; what they are is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, ReasoningStyle
from tokenwire.plugins.dialects._shared.listing import families_in

__all__ = (
    "NAMES",
    "HunyuanSettings",
    "all_families",
    "build_hunyuan",
    "build_hunyuan_parser",
)

NAMES: Final[Mapping[str, str]] = {
    "glm": "GLM 4.5 to 4.7",
    "ling3": "Ling 3",
    "laguna": "Poolside Laguna",
    "laguna_xs": "Poolside Laguna XS.2",
    "spark": "Spark 2.5",
}
all_families: Final = families_in("tokenwire.plugins.dialects.glm.families")


class HunyuanSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the parser `hunyuan`."""

    reasoning: ReasoningStyle = "auto"
    """As of every parser made from a format."""
    suffix: str | None = None
    """What each tag's name ends in. None: what the checkpoint's chat template says, else
    ":opensource"."""


def build_hunyuan_parser(settings: HunyuanSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.glm.families import hunyuan, suffix_of

    suffix = settings.suffix
    if suffix is None:
        template = services.checkpoint.chat_template() if services.checkpoint else None
        suffix = suffix_of(template or "")
    return hunyuan(suffix).maker(settings.reasoning)


def build_hunyuan(settings: NoSettings, services: Services) -> Dialect:
    from tokenwire.plugins.dialects.glm.families import hunyuan

    return hunyuan().dialect("hunyuan")
