"""Settings of the parser `generic`. Cheap to import: listings need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tokenwire.core.ports.dialect import ReasoningStyle

__all__ = ("GenericSettings",)


class GenericSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How answers are read."""

    response_template: Mapping[str, Any] | None = None
    """The template itself; None: the checkpoint's, from its tokenizer_config.json."""
    reasoning: ReasoningStyle = "auto"
    """none: the anchors of reasoning are text. implicit: answers begin inside reasoning."""
