"""Registers the dialect `harmony`, its parser and its template."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects.harmony.build import (
    build_harmony,
    build_parser,
    build_template,
)
from tokenwire.plugins.dialects.harmony.settings import TemplateSettings


@impl
def register_templates() -> Iterable[Factory[Template]]:
    return [Factory("harmony", TemplateSettings, build_template, "harmony messages")]


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [Factory("harmony", NoSettings, build_parser, "channels, calls as messages to tools")]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [Factory("harmony", NoSettings, build_harmony, "gpt-oss")]
