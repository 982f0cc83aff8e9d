"""Which dialect a configured name means, and which one a chat template asks for. Builds nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tokenwire.core.errors import ConfigError

__all__ = ("ALIASES", "pick")

ALIASES: Final[Mapping[str, str]] = {
    "chatml": "hermes",
    "hermes+think": "hermes",
    "qwen2.5": "hermes",
    "qwen3": "hermes",
    "sentencepiece": "plain",
}
"""Other names of dialects."""
PLANNED: Final = frozenset({"harmony", "json_array", "kimi", "llama3_json", "qwen3_coder"})
"""Families that have a name but no plugin."""


NO_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {}


def pick(
    template_source: str | None,
    name: str,
    *,
    families: Mapping[str, tuple[str, ...]] = NO_FAMILIES,
    installed: frozenset[str] | None = None,
) -> tuple[str, str]:
    """(the dialect's name, why) for a configured `name`; "auto" looks at the chat template.

    `families`: of each dialect, the texts that its families' templates hold, all of them. Of those
    that fit, the one with the most text is taken: it is the most particular.
    Raises ConfigError for the name of a family that nobody has written a plugin for, and, where
    `installed` says which dialects there are, never for one of these.
    """
    if name != "auto":
        return _named(name, installed or frozenset())
    if template_source is None:
        return "plain", "there is no chat template to tell the family by"
    # Why: the template may hold the text inside a quoted string.
    source = template_source.replace('\\"', '"')
    fitting = [
        (sum(map(len, marks)), family)
        for family, marks in families.items()
        if marks and all(mark in source for mark in marks)
    ]
    if fitting:
        _, family = max(fitting)
        return family, f"the chat template has {' and '.join(families[family])}"
    return "plain", "the chat template has no known family's markers"


def _named(name: str, installed: frozenset[str]) -> tuple[str, str]:
    if name in installed:
        return name, "configured"
    if name in ALIASES:
        return ALIASES[name], f"configured as {name!r}, another name of it"
    if name in PLANNED:
        raise ConfigError(
            f"dialect {name!r} is a known family, but no plugin for it is installed; install one,"
            " or use 'plain' to get its answers as text"
        )
    return name, "configured"
