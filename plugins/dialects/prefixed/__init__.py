"""Registers the families whose calls are JSON behind a marker of their own: see `families`."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.prefixed.build import build_dialect, build_parser
from tokenwire.plugins.dialects.prefixed.families import FAMILIES


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory(family.name, ReasoningSettings, build_parser(family), family.reads)
        for family in FAMILIES
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory(family.name, NoSettings, build_dialect(family), family.models)
        for family in FAMILIES
    ]
