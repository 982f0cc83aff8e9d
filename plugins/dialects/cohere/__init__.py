"""Registers the dialects `cohere` and `command_r`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings
from tokenwire.plugins.dialects.cohere.build import (
    build_cohere,
    build_cohere_parser,
    build_command_r,
    build_command_r_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("cohere", ReasoningSettings, build_cohere_parser, "thinking, actions, responses"),
        Factory("command_r", NoSettings, build_command_r_parser, "JSON actions in a fence"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("cohere", NoSettings, build_cohere, "Command R7B, Command A, North"),
        Factory("command_r", NoSettings, build_command_r, "Command R+"),
    ]
