"""Registers the dialects `hermes` and `think`, their parsers, and the template `chatml`."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.hermes.build import (
    build_hermes,
    build_hermes_parser,
    build_qwen_vl,
    build_template,
    build_think,
    build_think_parser,
)


@impl
def register_templates() -> Iterable[Factory[Template]]:
    return [Factory("chatml", NoSettings, build_template, "ChatML with JSON tool calls in tags")]


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("hermes", ReasoningSettings, build_hermes_parser, "think blocks, JSON tool calls"),
        Factory("think", ReasoningSettings, build_think_parser, "think blocks"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("hermes", NoSettings, build_hermes, "Hermes, Qwen2.5, Qwen3"),
        Factory("qwen_vl", NoSettings, build_qwen_vl, "Qwen2-VL, Qwen2.5-VL"),
        Factory("think", NoSettings, build_think, "reasoning in think blocks, no tools"),
    ]
