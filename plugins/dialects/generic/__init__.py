"""Registers the dialect `generic`, which reads answers as a checkpoint's response template says."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects.generic.build import build_dialect, build_parser
from tokenwire.plugins.dialects.generic.settings import GenericSettings


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [Factory("generic", GenericSettings, build_parser, "what response_template says")]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [Factory("generic", NoSettings, build_dialect, "checkpoints with a response_template")]
