"""Builds the Functionary dialects and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker

__all__ = ("build_messages", "build_messages_parser", "build_tagged", "build_tagged_parser")


def build_tagged_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.functionary.maker import tagged_maker

    return tagged_maker()


def build_messages_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.functionary.maker import MessagesMaker

    return MessagesMaker()


def build_tagged(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<function=example_function_name>", "<|python_tag|>")
    return Dialect("functionary_v3_1", "plain", "functionary_v3_1", template_markers=markers)


def build_messages(settings: NoSettings, services: Services) -> Dialect:
    markers = (">>>all", "recipient==all")
    return Dialect("functionary_v3_2", "plain", "functionary_v3_2", template_markers=markers)
