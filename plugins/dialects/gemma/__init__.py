"""Registers the dialects `gemma4`, `functiongemma` and `gemma3`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.gemma.build import (
    build_functiongemma,
    build_functiongemma_parser,
    build_gemma3,
    build_gemma3_parser,
    build_gemma4,
    build_gemma4_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("gemma4", ReasoningSettings, build_gemma4_parser, "thought channel, quoted calls"),
        Factory("functiongemma", NoSettings, build_functiongemma_parser, "escaped calls"),
        Factory("gemma3", ReasoningSettings, build_gemma3_parser, "text"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("gemma4", NoSettings, build_gemma4, "Gemma 4"),
        Factory("functiongemma", NoSettings, build_functiongemma, "FunctionGemma"),
        Factory("gemma3", NoSettings, build_gemma3, "Gemma 1 to 3"),
    ]
