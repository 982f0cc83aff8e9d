"""How DeepSeek models spell things: special tokens, tool markup, reasoning. Reads and renders
nothing.

The bars are U+FF5C and the low lines U+2581, as the vocabularies have them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

__all__ = (
    "ASSISTANT",
    "BOS",
    "DSML",
    "EOS",
    "REMINDER",
    "SECTION",
    "SYSTEM",
    "THINK",
    "THINK_END",
    "TURNS",
    "USER",
    "V4",
    "V32",
    "V41",
    "Dsml",
)

BOS: Final = "<｜begin▁of▁sentence｜>"
EOS: Final = "<｜end▁of▁sentence｜>"
USER: Final = "<｜User｜>"
ASSISTANT: Final = "<｜Assistant｜>"
SYSTEM: Final = "<｜System｜>"
REMINDER: Final = "<｜latest_reminder｜>"
THINK: Final = "<think>"
THINK_END: Final = "</think>"
DSML: Final = "｜DSML｜"

TURNS: Final = (BOS, EOS, USER, ASSISTANT)
"""What begins and ends turns, in every generation."""
SECTION: Final = tuple(
    f"<｜tool▁{word}｜>"
    for word in (
        "calls▁begin", "calls▁end", "call▁begin", "call▁end", "sep", "outputs▁begin",
        "outputs▁end", "output▁begin", "output▁end",
    )
)  # fmt: skip
"""V3, V3.1 and R1."""


class Dsml(Struct, frozen=True):
    """The tags of one generation's tool markup."""

    section: str
    """The name of the tag around all calls."""
    space: str = ""
    """Between the DSML token and a tag's name."""

    def open(self, name: str) -> str:
        """An opening tag up to its attributes."""
        return f"<{DSML}{self.space}{name}"

    def close(self, name: str) -> str:
        """A closing tag."""
        return f"</{DSML}{self.space}{name}>"


V32: Final = Dsml("function_calls")
V4: Final = Dsml("tool_calls")
V41: Final = Dsml("calls", " ")
