"""Registers the dialect `plain`, its template for models without one, and its parser."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects.plain.build import build_dialect, build_parser, build_template


@impl
def register_templates() -> Iterable[Factory[Template]]:
    return [Factory("plain", NoSettings, build_template, "role, colon, text: for base models")]


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [Factory("plain", NoSettings, build_parser, "everything is text")]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [Factory("plain", NoSettings, build_dialect, "no markers, no tools, no reasoning")]
