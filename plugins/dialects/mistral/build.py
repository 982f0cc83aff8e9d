"""Builds the dialects `mistral` and `mistral_json`, and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = ("build_json_parser", "build_mistral", "build_mistral_json", "build_parser")


def build_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.mistral.maker import mistral_maker

    return mistral_maker(settings.reasoning)


def build_json_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.mistral.maker import mistral_json_maker

    return mistral_json_maker(settings.reasoning)


def build_mistral(settings: NoSettings, services: Services) -> Dialect:
    markers = ("[TOOL_CALLS]", "[ARGS]")
    return Dialect("mistral", "plain", parser="mistral", template_markers=markers)


def build_mistral_json(settings: NoSettings, services: Services) -> Dialect:
    markers = ("[TOOL_CALLS]",)
    return Dialect("mistral_json", "plain", parser="mistral_json", template_markers=markers)
