"""Builds the dialect `apertus` and its parser."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = ("build_apertus", "build_parser")


def build_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.apertus.maker import apertus_maker

    return apertus_maker(settings.reasoning)


def build_apertus(settings: NoSettings, services: Services) -> Dialect:
    markers, types = ("<|tools_prefix|>", "<|inner_prefix|>"), ("apertus",)
    return Dialect(
        "apertus", "plain", parser="apertus", template_markers=markers, model_types=types
    )
