"""Registers the dialect `apertus` and its parser."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.apertus.build import build_apertus, build_parser


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [Factory("apertus", ReasoningSettings, build_parser, "calls keyed by their tool")]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [Factory("apertus", NoSettings, build_apertus, "Apertus")]
