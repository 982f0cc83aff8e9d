"""Builds the dialects `hermes` and `think`, their parsers, and the template `chatml`."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects._shared.qwen_vl import Grid, QwenVl, media_of
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = (
    "build_hermes",
    "build_hermes_parser",
    "build_qwen_vl",
    "build_template",
    "build_think",
    "build_think_parser",
)


def build_template(settings: NoSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.hermes.template import ChatmlTemplate

    return ChatmlTemplate()


def build_hermes_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.hermes.maker import hermes_maker

    return hermes_maker(settings.reasoning)


def build_think_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.hermes.maker import think_maker

    return think_maker(settings.reasoning)


def build_hermes(settings: NoSettings, services: Services) -> Dialect:
    # Why two: calls in other shapes use the same tag, so the JSON key must be there too.
    markers = ("<tool_call>", '"arguments":')
    return Dialect(
        "hermes",
        "chatml",
        parser="hermes",
        media=media_of(services.checkpoint),
        template_markers=markers,
    )


def build_qwen_vl(settings: NoSettings, services: Services) -> Dialect:
    """As `hermes`, whatever the checkpoint's files say, if there are any."""
    media = media_of(services.checkpoint) or QwenVl(Grid())
    return Dialect(
        "qwen_vl", "chatml", parser="hermes", media=media, model_types=("qwen2_vl", "qwen2_5_vl")
    )


def build_think(settings: NoSettings, services: Services) -> Dialect:
    return Dialect("think", "chatml", parser="think", template_markers=("<think>",), is_vague=True)
