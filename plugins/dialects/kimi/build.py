"""Builds the dialects `kimi` and `kimi_k3` and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = ("build_kimi", "build_kimi_k3", "build_kimi_k3_parser", "build_kimi_parser")


def build_kimi_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.kimi.parsers import k2_parser

    return k2_parser(settings.reasoning)


def build_kimi_k3_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.kimi.parsers import k3_parser

    return k3_parser(settings.reasoning)


def build_kimi(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|tool_calls_section_begin|>",)
    types = ("kimi_k2", "kimi_k25")
    return Dialect("kimi", "plain", "kimi", template_markers=markers, model_types=types)


def build_kimi_k3(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|open|>", "<|sep|>", "<|close|>")
    return Dialect(
        "kimi_k3", "plain", "kimi_k3", template_markers=markers, model_types=("kimi_k3",)
    )
