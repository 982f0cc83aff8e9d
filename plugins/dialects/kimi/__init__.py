"""Registers the dialects `kimi` (K2) and `kimi_k3`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.kimi.build import (
    build_kimi,
    build_kimi_k3,
    build_kimi_k3_parser,
    build_kimi_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("kimi", ReasoningSettings, build_kimi_parser, "sections of calls with ids"),
        Factory("kimi_k3", ReasoningSettings, build_kimi_k3_parser, "frames, typed arguments"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("kimi", NoSettings, build_kimi, "Kimi K2, K2-Thinking"),
        Factory("kimi_k3", NoSettings, build_kimi_k3, "Kimi K3"),
    ]
