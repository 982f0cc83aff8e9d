"""Registers the dialects `pythonic`, `lfm2` and `olmo3`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.pythonic.build import (
    build_lfm2,
    build_lfm2_parser,
    build_olmo3,
    build_olmo3_parser,
    build_pythonic,
    build_pythonic_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("lfm2", ReasoningSettings, build_lfm2_parser, "<|tool_call_start|>[f(x=1)]"),
        Factory("olmo3", ReasoningSettings, build_olmo3_parser, "<function_calls>, f(x=1)"),
        Factory("pythonic", ReasoningSettings, build_pythonic_parser, "[f(x=1), g()]"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("lfm2", NoSettings, build_lfm2, "LFM2, LFM2.5"),
        Factory("olmo3", NoSettings, build_olmo3, "OLMo 3"),
        Factory("pythonic", NoSettings, build_pythonic, "answers that are a Python list of calls"),
    ]
