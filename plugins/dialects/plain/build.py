"""Builds the dialect `plain`."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template

__all__ = ("build_dialect", "build_parser", "build_template")


def build_template(settings: NoSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.plain.template import PlainTemplate

    return PlainTemplate()


def build_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.plain.parser import PlainMaker

    return PlainMaker()


def build_dialect(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("plain", template="plain", parser="plain")
