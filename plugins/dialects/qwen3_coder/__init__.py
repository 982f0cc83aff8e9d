"""Registers the dialects whose calls are `<function=…><parameter=…>`, and their parsers."""

from __future__ import annotations

from collections.abc import Iterable

from tokenwire.core.factory import Factory
from tokenwire.core.hookspecs import impl
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.listing import dialects_of, parsers_of
from tokenwire.plugins.dialects.qwen3_coder.build import NAMES, all_families


@impl
def register_parsers() -> Iterable[Factory[ParserMaker]]:
    return parsers_of(all_families, NAMES)


@impl
def register_dialects() -> Iterable[Factory[Dialect]]:
    return dialects_of(all_families, NAMES)
