"""Registers the dialects whose calls are a name and `<arg_key>`, `<arg_value>` pairs."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.listing import dialects_of, parsers_of
from tokenwire.plugins.dialects.glm.build import (
    NAMES,
    HunyuanSettings,
    all_families,
    build_hunyuan,
    build_hunyuan_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    hunyuan = Factory("hunyuan", HunyuanSettings, build_hunyuan_parser, "Tencent Hy3")
    return [*parsers_of(all_families, NAMES), hunyuan]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    hunyuan = Factory("hunyuan", NoSettings, build_hunyuan, "Tencent Hy3")
    return [*dialects_of(all_families, NAMES), hunyuan]
