"""Registers the dialects `functionary_v3_1` and `functionary_v3_2`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory, NoSettings
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects.functionary.build import (
    build_messages,
    build_messages_parser,
    build_tagged,
    build_tagged_parser,
)


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return [
        Factory("functionary_v3_1", NoSettings, build_tagged_parser, "calls in function tags"),
        Factory("functionary_v3_2", NoSettings, build_messages_parser, "messages to recipients"),
    ]


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return [
        Factory("functionary_v3_1", NoSettings, build_tagged, "Functionary v3.1"),
        Factory("functionary_v3_2", NoSettings, build_messages, "Functionary v3.2"),
    ]
