"""Builds the dialects `pythonic`, `lfm2` and `olmo3`, and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = (
    "build_lfm2",
    "build_lfm2_parser",
    "build_olmo3",
    "build_olmo3_parser",
    "build_pythonic",
    "build_pythonic_parser",
)


def build_lfm2_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.pythonic.maker import lfm2_maker

    return lfm2_maker(settings.reasoning)


def build_olmo3_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.pythonic.maker import olmo3_maker

    return olmo3_maker(settings.reasoning)


def build_pythonic_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.pythonic.maker import pythonic_maker

    return pythonic_maker(settings.reasoning)


def build_lfm2(settings: NoSettings, services: Services) -> Dialect:
    markers = ("List of tools: ", "<|im_start|>")
    return Dialect("lfm2", "chatml", parser="lfm2", template_markers=markers)


def build_olmo3(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<function_calls>", "<|im_start|>")
    return Dialect("olmo3", "chatml", parser="olmo3", template_markers=markers)


def build_pythonic(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("pythonic", "plain", parser="pythonic")
