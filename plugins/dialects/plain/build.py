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
    """The checkpoint's own template where it has one."""
    has_own = services.checkpoint is not None and services.checkpoint.chat_template() is not None
    return Dialect("plain", template="jinja" if has_own else "plain", parser="plain")
