"""Builds the dialects `llama3_json`, `llama4` and `json_array`, and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = (
    "build_array",
    "build_array_parser",
    "build_llama3",
    "build_llama3_parser",
    "build_llama4",
    "build_llama4_parser",
)


def build_array_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.llama.maker import array_maker

    return array_maker(settings.reasoning)


def build_llama3_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.llama.maker import llama3_maker

    return llama3_maker(settings.reasoning)


def build_llama4_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.llama.maker import llama4_maker

    return llama4_maker(settings.reasoning)


def build_array(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("json_array", "plain", parser="json_array")


def build_llama3(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|eot_id|>", "ipython", '"parameters": ')
    return Dialect("llama3_json", "plain", parser="llama3_json", template_markers=markers)


def build_llama4(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|header_start|>", "<|python_start|>")
    return Dialect("llama4", "plain", parser="llama4", template_markers=markers)
