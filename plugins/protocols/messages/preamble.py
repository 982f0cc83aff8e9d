"""The volatile line that some agents put before a system prompt. Knows no turns."""

from __future__ import annotations

import re
from typing import Final

__all__ = ("NAME", "volatile")

NAME: Final = "x-anthropic-billing-header"
# Why a "=": agents write pairs there; a sentence about the header is for the model.
LINE: Final = re.compile(rf"\s*{NAME}:[^\n=]*=[^\n]*(?:\n\s*|\Z)")


def volatile(text: str) -> str:
    """The beginning of a system text that says who is billed, up to what the model is to read; ""
    where there is none."""
    found = LINE.match(text)
    return found.group() if found is not None else ""
