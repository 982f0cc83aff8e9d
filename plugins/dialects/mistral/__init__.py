"""Registers the dialects `mistral` and `mistral_json`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.mistral.build import (
    build_json_parser,
    build_mistral,
    build_mistral_json,
    build_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("mistral", ReasoningSettings, build_parser, "[THINK], [TOOL_CALLS]f[ARGS]{}"),
        Factory("mistral_json", ReasoningSettings, build_json_parser, "[TOOL_CALLS][{}, {}]"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("mistral", NoSettings, build_mistral, "Mistral Small 3.2, Ministral 3, Devstral"),
        Factory("mistral_json", NoSettings, build_mistral_json, "Mistral 7B v0.3, Nemo, Large 2"),
    ]
