"""Registers the dialects of DeepSeek's models, their parsers, and the templates of V4 and V4.1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.deepseek.build import (
    build_dialect,
    build_v3_parser,
    build_v4_parser,
    build_v4_template,
    build_v31_parser,
    build_v32_parser,
    build_v41_parser,
    build_v41_template,
)


@impl
def register_templates() -> Iterable[Factory[Template]]:
    return [
        Factory("deepseek_v4", NoSettings, build_v4_template, "DeepSeek V4 prompts"),
        Factory("deepseek_v41", NoSettings, build_v41_template, "DeepSeek V4.1 prompts"),
    ]


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("deepseek_v3", ReasoningSettings, build_v3_parser, "sections of fenced calls"),
        Factory("deepseek_v31", ReasoningSettings, build_v31_parser, "sections of calls"),
        Factory("deepseek_v32", ReasoningSettings, build_v32_parser, "DSML function_calls"),
        Factory("deepseek_v4", ReasoningSettings, build_v4_parser, "DSML tool_calls"),
        Factory("deepseek_v41", ReasoningSettings, build_v41_parser, "DSML calls, spaced tags"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    summaries = {
        "deepseek_v3": "DeepSeek V3, R1 and its distillations",
        "deepseek_v31": "DeepSeek V3.1",
        "deepseek_v32": "DeepSeek V3.2",
        "deepseek_v4": "DeepSeek V4",
        "deepseek_v41": "DeepSeek V4.1",
    }
    return [
        Factory(name, NoSettings, partial(build_dialect, name), summary)
        for name, summary in summaries.items()
    ]
