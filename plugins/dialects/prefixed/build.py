"""Builds a family's dialect and parser from its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.prefixed.families import Family

__all__ = ("build_dialect", "build_parser")

BuildDialect: TypeAlias = Callable[[NoSettings, Services], Dialect]
BuildParser: TypeAlias = Callable[[ReasoningSettings, Services], ParserMaker]


def build_parser(family: Family) -> BuildParser:
    def build(settings: ReasoningSettings, services: Services) -> ParserMaker:
        from tokenwire.plugins.dialects.prefixed.makers import maker

        return maker(family.name, settings.reasoning)

    return build


def build_dialect(family: Family) -> BuildDialect:
    def build(settings: NoSettings, services: Services) -> Dialect:
        return Dialect(
            family.name, family.template, parser=family.name, template_markers=family.known_by
        )

    return build
