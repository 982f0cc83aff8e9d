"""The markers of Hermes-style answers, and which of them are looked for where."""

from __future__ import annotations

from typing import Final

from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects._shared.tags import Tags

__all__ = (
    "AGAIN",
    "BETWEEN",
    "CALL",
    "CALLS",
    "CALL_END",
    "LATER",
    "OPENING",
    "PHASES",
    "REASONING",
    "THINK",
    "THINK_END",
)

THINK, THINK_END = "<think>", "</think>"
CALL, CALL_END = "<tool_call>", "</tool_call>"

OPENING: Final = {
    (thinks, calls): Tags([*(THINK, THINK_END) * thinks, *(CALL,) * calls])
    for thinks in (False, True)
    for calls in (False, True)
}
"""In text, before anything visible has come: by whether reasoning and calls are looked for."""
LATER: Final = {calls: Tags((CALL,) * calls) for calls in (False, True)}
"""In text, afterwards."""
REASONING: Final = {calls: Tags((THINK_END, *(CALL,) * calls)) for calls in (False, True)}
CALLS: Final = Tags((CALL, CALL_END))
AGAIN: Final = Tags((THINK,))
"""At the head of reasoning that the prompt has opened."""
BETWEEN: Final = " \t\r\n,[]}"
"""What may stand between the calls of one tag."""
PHASES: Final[dict[str, Phase]] = {
    "text": "content", "reasoning": "reasoning", "draft": "reasoning",
    "call": "tool_call", "after": "tool_call",
}  # fmt: skip
"""Of the parser's states."""
