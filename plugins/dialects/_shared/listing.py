"""Factories of families that are data. Cheap to import: what a family is comes when it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from tokenwire.core.factory import Factory, NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

if TYPE_CHECKING:
    from tokenwire.plugins.dialects._shared.family import Family

__all__ = ("FamilyMap", "dialects_of", "families_in", "parsers_of")

FamilyMap: TypeAlias = "Callable[[], Mapping[str, Family]]"
"""Imports what the families need and gives them by name."""


def families_in(module: str) -> FamilyMap:
    """The FAMILIES of a module that is imported when one of them is built."""

    def families() -> Mapping[str, Family]:
        found: Mapping[str, Family] = import_module(module).FAMILIES
        return found

    return families


def parsers_of(families: FamilyMap, names: Mapping[str, str]) -> list[Factory[ParserMaker]]:
    """One parser a family; `names`: which, and what they are for."""
    return [
        Factory(name, ReasoningSettings, _parser(families, name), summary)
        for name, summary in names.items()
    ]


def dialects_of(families: FamilyMap, names: Mapping[str, str]) -> list[Factory[Dialect]]:
    """One dialect a family."""
    return [
        Factory(name, NoSettings, _dialect(families, name), summary)
        for name, summary in names.items()
    ]


def _parser(families: FamilyMap, name: str) -> Callable[..., ParserMaker]:
    def build(settings: ReasoningSettings, services: Services) -> ParserMaker:
        return families()[name].maker(settings.reasoning)

    return build


def _dialect(families: FamilyMap, name: str) -> Callable[..., Dialect]:
    def build(settings: NoSettings, services: Services) -> Dialect:
        from tokenwire.plugins.dialects._shared.qwen_vl import media_of

        return replace(families()[name].dialect(name), media=media_of(services.checkpoint))

    return build
