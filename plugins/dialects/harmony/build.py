"""Builds the dialect `harmony`, its parser and its template."""

from __future__ import annotations

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects.harmony.settings import TemplateSettings

__all__ = ("build_harmony", "build_parser", "build_template")

TEMPLATE_MARKERS = ("<|start|>assistant<|channel|>", "<|message|>")


def build_template(settings: TemplateSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.harmony.template import HarmonyTemplate

    return HarmonyTemplate(settings)


def build_parser(settings: NoSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.harmony.maker import HarmonyMaker

    return HarmonyMaker()


def build_harmony(settings: NoSettings, services: Services) -> Dialect:
    return Dialect(
        "harmony",
        "harmony",
        parser="harmony",
        template_markers=TEMPLATE_MARKERS,
        model_types=("gpt_oss",),
    )
