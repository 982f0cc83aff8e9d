"""The markers of harmony messages. All are special tokens of the vocabulary."""

from __future__ import annotations

from typing import Final

from tokenwire.plugins.dialects._shared.tags import Tags

__all__ = (
    "ALL",
    "CALL",
    "CHANNEL",
    "CONSTRAIN",
    "END",
    "MESSAGE",
    "RETURN",
    "START",
    "TAGS",
)

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
END, RETURN, CALL = "<|end|>", "<|return|>", "<|call|>"
ALL: Final = (START, CHANNEL, CONSTRAIN, MESSAGE, END, RETURN, CALL)
TAGS: Final = Tags(ALL)
