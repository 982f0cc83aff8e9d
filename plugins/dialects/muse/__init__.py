"""Registers the dialect `muse` and its parser."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects.muse.build import build_dialect, build_parser


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [Factory("muse", NoSettings, build_parser, "addressed messages, calls in atem tags")]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [Factory("muse", NoSettings, build_dialect, "Muse Glimmer")]
