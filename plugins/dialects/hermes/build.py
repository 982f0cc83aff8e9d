"""Builds the dialects `hermes` and `think`, their parsers, and the template `chatml`."""

from __future__ import annotations

from msgspec import Struct

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, ReasoningStyle, Template

__all__ = (
    "ReasoningSettings",
    "build_hermes",
    "build_hermes_parser",
    "build_template",
    "build_think",
    "build_think_parser",
)


class ReasoningSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of both parsers."""

    reasoning: ReasoningStyle = "auto"
    """auto and think: a <think> block at the start of the answer, or one that the prompt opened,
    is reasoning. none: its markers are text."""


def build_template(settings: NoSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate

    return ChatmlTemplate()


def build_hermes_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.hermes.maker import HermesMaker

    return HermesMaker(thinks=settings.reasoning != "none")


def build_think_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.hermes.maker import HermesMaker

    return HermesMaker(thinks=settings.reasoning != "none", calls=False)


def build_hermes(settings: NoSettings, services: Services) -> Dialect:
    # Why two: calls in other shapes use the same tag, so the JSON key must be there too.
    markers = ("<tool_call>", '"arguments":')
    return Dialect("hermes", "chatml", parser="hermes", template_markers=markers)


def build_think(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("think", "chatml", parser="think", template_markers=("<think>",))
