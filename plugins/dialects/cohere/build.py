"""Builds the dialects `cohere` and `command_r`, and their parsers."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = ("build_cohere", "build_cohere_parser", "build_command_r", "build_command_r_parser")


def build_cohere_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.cohere.maker import cohere_maker

    return cohere_maker(settings.reasoning)


def build_command_r_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.cohere.maker import command_r_maker

    return command_r_maker()


def build_cohere(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|START_ACTION|>", "<|START_THINKING|>")
    types = ("cohere2", "cohere2_moe", "cohere2_vision")
    return Dialect("cohere", "plain", parser="cohere", template_markers=markers, model_types=types)


def build_command_r(settings: NoSettings, services: Services) -> Dialect:
    markers = ("<|CHATBOT_TOKEN|>", "Action:\\n```json", '"tool_name"')
    return Dialect("command_r", "plain", parser="command_r", template_markers=markers)
