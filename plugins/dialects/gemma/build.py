"""Builds the Gemma dialects and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = (
    "build_functiongemma",
    "build_functiongemma_parser",
    "build_gemma3",
    "build_gemma3_parser",
    "build_gemma4",
    "build_gemma4_parser",
)


def build_gemma4_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.gemma.maker import gemma4_maker

    return gemma4_maker(settings.reasoning)


def build_functiongemma_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.gemma.maker import functiongemma_maker

    return functiongemma_maker()


def build_gemma3_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.gemma.maker import gemma3_maker

    return gemma3_maker(settings.reasoning)


def build_gemma4(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|tool_call>call:", "<|channel>thought")
    types = ("gemma4", "gemma4_text")
    return Dialect("gemma4", "plain", parser="gemma4", template_markers=markers, model_types=types)


def build_functiongemma(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<start_function_call>", "<escape>")
    return Dialect("functiongemma", "plain", parser="functiongemma", template_markers=markers)


def build_gemma3(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<start_of_turn>", "<end_of_turn>")
    types = ("gemma", "gemma2", "gemma3", "gemma3_text")
    return Dialect("gemma3", "plain", parser="gemma3", template_markers=markers, model_types=types)
