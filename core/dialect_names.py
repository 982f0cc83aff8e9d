"""Which dialect a configured name means, and which one a checkpoint asks for. Builds nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from tokenwire.core.ports.dialect import Dialect

__all__ = ("ALIASES", "NO_SIGNS", "Signs", "misfit", "model_types", "pick")

ALIASES: Final[Mapping[str, str]] = {
    "chatml": "hermes",
    "deepseek_r1": "deepseek_v3",
    "gpt_oss": "harmony",
    "hermes+think": "hermes",
    "qwen2.5": "hermes",
    "qwen3": "hermes",
    "qwen3.5": "qwen3_coder",
    "sentencepiece": "plain",
}
"""Other names of dialects."""


class Signs(Struct, frozen=True):
    """What a checkpoint shows of its family."""

    template: str | None = None
    """Its chat template."""
    model_types: frozenset[str] = frozenset()
    """What its config.json says: model_type, its text model's, architectures."""


NO_SIGNS: Final = Signs()


def model_types(config: Mapping[str, object]) -> frozenset[str]:
    """Of a config.json."""
    inner = config.get("text_config")
    found = [config.get("model_type"), inner.get("model_type") if isinstance(inner, dict) else None]
    architectures = config.get("architectures")
    found += architectures if isinstance(architectures, list) else []
    return frozenset(name for name in found if isinstance(name, str))


def pick(
    name: str,
    signs: Signs = NO_SIGNS,
    *,
    dialects: Iterable[Dialect] = (),
    installed: frozenset[str] = frozenset(),
) -> tuple[str, str]:
    """(the dialect's name, why) for a configured `name`; "auto" looks at `signs`.

    In this order: the family whose template markers stand in the chat template, of several the one
    with the most text of them, for that is the most particular; one whose model types the
    config.json names; one whose plugin found a sign of its own; one that shows little (reasoning
    alone); plain. A name that is `installed` is no alias.
    """
    if name != "auto":
        if name in ALIASES and name not in installed:
            return ALIASES[name], f"configured as {name!r}, another name of it"
        return name, "configured"
    dialects = list(dialects)
    fitting = _fitting(signs.template or "", dialects)
    for dialect in [dialect for dialect in fitting if not dialect.is_vague]:
        return dialect.name, f"the chat template has {' and '.join(dialect.template_markers)}"
    for dialect in dialects:
        for model_type in sorted(signs.model_types.intersection(dialect.model_types)):
            return dialect.name, f"config.json names {model_type}"
    for dialect in dialects:
        if dialect.sign:
            return dialect.name, dialect.sign
    for dialect in fitting:
        markers = " and ".join(dialect.template_markers)
        return dialect.name, f"the chat template has {markers}, and no other family's markers"
    if signs.template is None:
        return "plain", "there is no chat template to tell the family by"
    return "plain", "the chat template has no known family's markers"


def misfit(configured: Dialect, template: str | None, dialects: Iterable[Dialect]) -> str:
    """A warning: the chat template has another family's markers, and none of the `configured`
    one's; "" where it fits, or where nothing tells."""
    if template is None or not (configured.template_markers or configured.name == "plain"):
        return ""
    fitting = _fitting(template, dialects)
    clear = [dialect for dialect in fitting if not dialect.is_vague]
    if not clear or configured.name in [dialect.name for dialect in fitting]:
        return ""
    markers = " and ".join(clear[0].template_markers)
    return (
        f"dialect {configured.name!r} is configured, but the chat template has {markers} as"
        f" {clear[0].name!r} does: calls and reasoning may not be found in answers"
    )


def _fitting(template: str, dialects: Iterable[Dialect]) -> list[Dialect]:
    """Those whose markers the template has, the most particular first, vague ones last."""
    # Why: the template may hold the text inside a quoted string.
    source = template.replace('\\"', '"')
    fitting = [
        dialect
        for dialect in dialects
        if dialect.template_markers and all(mark in source for mark in dialect.template_markers)
    ]
    fitting.sort(key=lambda dialect: sum(map(len, dialect.template_markers)), reverse=True)
    return sorted(fitting, key=lambda dialect: dialect.is_vague)
