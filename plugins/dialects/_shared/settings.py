"""Settings of every parser that is made from a format. Cheap to import: listings need them."""

from __future__ import annotations

from msgspec import Struct

from tokenwire.core.ports.dialect import ReasoningStyle

__all__ = ("ReasoningSettings",)


class ReasoningSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the key `reasoning` of a model or a parser may say."""

    reasoning: ReasoningStyle = "auto"
    """auto: the family's habit; a block at the start of the answer, or one that the prompt opened.
    think: the same, with <think> blocks where the family has none of its own. implicit: the answer
    begins inside a block that nothing opens, unless the prompt has just closed one. none: the
    markers of reasoning are text."""
