"""Builds the dialects of DeepSeek's models, their parsers, and the templates of V4 and V4.1."""

from __future__ import annotations

from typing import Final

from tokenwire.core.factory import NoSettings, Services
from tokenwire.core.ports.dialect import Dialect, ParserMaker, Template
from tokenwire.plugins.dialects._shared.settings import ReasoningSettings

__all__ = (
    "MARKS",
    "build_dialect",
    "build_v3_parser",
    "build_v4_parser",
    "build_v4_template",
    "build_v31_parser",
    "build_v32_parser",
    "build_v41_parser",
    "build_v41_template",
)

MARKS: Final = {
    "deepseek_v3": ("<｜tool▁calls▁begin｜>", "['type'] + '<｜tool▁sep｜>'"),
    "deepseek_v31": ("<｜tool▁calls▁begin｜>",),
    "deepseek_v32": ("｜DSML｜", "function_calls>"),
    "deepseek_v4": ("｜DSML｜", "tool_calls>"),
    "deepseek_v41": ("｜DSML｜ calls>",),
}
"""What a chat template of each family holds."""
TEMPLATES: Final = {"deepseek_v4": "deepseek_v4", "deepseek_v41": "deepseek_v41"}
"""Of those that bring none; these alone are known by their type, for they can be asked without."""


def build_dialect(name: str, settings: NoSettings, services: Services) -> Dialect:
    """`name`: one of MARKS."""
    template = TEMPLATES.get(name, "plain")
    return Dialect(
        name,
        template,
        parser=name,
        template_markers=MARKS[name],
        model_types=(name,) if name in TEMPLATES else (),
    )


def build_v4_template(settings: NoSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.deepseek.template_v4 import DeepseekV4Template

    return DeepseekV4Template()


def build_v41_template(settings: NoSettings, services: Services) -> Template:
    from tokenwire.plugins.dialects.deepseek.template_v41 import DeepseekV41Template

    return DeepseekV41Template()


def build_v3_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.deepseek.parsers import section_parser

    return section_parser(settings.reasoning, has_fence=True)


def build_v31_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.deepseek.parsers import section_parser

    return section_parser(settings.reasoning, has_fence=False)


def build_v32_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.deepseek.parsers import dsml_parser
    from tokenwire.plugins.dialects.deepseek.spelling import V32

    return dsml_parser(V32, settings.reasoning)


def build_v4_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.deepseek.parsers import dsml_parser
    from tokenwire.plugins.dialects.deepseek.spelling import V4

    return dsml_parser(V4, settings.reasoning)


def build_v41_parser(settings: ReasoningSettings, services: Services) -> ParserMaker:
    from tokenwire.plugins.dialects.deepseek.parsers import dsml_parser
    from tokenwire.plugins.dialects.deepseek.spelling import V41

    return dsml_parser(V41, settings.reasoning)
