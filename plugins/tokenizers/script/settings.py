"""What can be set of the tokenizer `script`."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("ScriptSettings",)


class ScriptSettings(Struct, frozen=True, forbid_unknown_fields=True):
    sentencepiece: bool = False
    """Pieces are spelled SentencePiece's way: U+2581 is a space, and an answer's first one goes."""
