"""Filling a gap between two texts: how a vocabulary's own tokens ask for it. Pure; knows no model.

The orders are those that the models were trained on: "Efficient Training of Language Models to Fill
in the Middle" (Bavarian et al., 2022) calls them PSM and SPM, for prefix, suffix and middle.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

__all__ = ("Gap", "gap_of")


class Gap(Struct, frozen=True):
    """What stands before, between and behind the two texts. `suffix_first`: their order."""

    before: str
    between: str
    behind: str = ""
    suffix_first: bool = False

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(text for text in (self.before, self.between, self.behind) if text)


GAPS: Final = (
    Gap("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen, Gemma, Granite 4
    Gap("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    Gap("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    Gap("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # noqa: RUF001  (DeepSeek)
    Gap("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
    Gap("▁<PRE>", "▁<SUF>", "▁<MID>"),  # Code Llama
    Gap("<PRE>", "<SUF>", "<MID>"),
    Gap("[SUFFIX]", "[PREFIX]", suffix_first=True),  # Codestral
)


def gap_of(added: Collection[str]) -> Gap | None:
    """How a vocabulary with these added tokens fills gaps; None: it does not."""
    return next((gap for gap in GAPS if all(token in added for token in gap.tokens)), None)
