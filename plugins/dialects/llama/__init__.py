"""Registers the dialects `llama3_json`, `llama4` and `json_array`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.llama.build import (
    build_array,
    build_array_parser,
    build_llama3,
    build_llama3_parser,
    build_llama4,
    build_llama4_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("json_array", ReasoningSettings, build_array_parser, "a JSON list of calls"),
        Factory("llama3_json", ReasoningSettings, build_llama3_parser, "calls as bare JSON"),
        Factory("llama4", ReasoningSettings, build_llama4_parser, "calls as Python, or bare JSON"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("json_array", NoSettings, build_array, "answers that are a JSON list of calls"),
        Factory("llama3_json", NoSettings, build_llama3, "Llama 3.1, 3.2, 3.3"),
        Factory("llama4", NoSettings, build_llama4, "Llama 4"),
    ]
