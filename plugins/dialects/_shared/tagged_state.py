"""What a `TaggedParser` is doing, and how that is saved. Reads nothing."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.prompt import Phase
from tokenwire.plugins.dialects._shared.emitter import OpenPart
from tokenwire.plugins.dialects._shared.tables import Head

__all__ = ("PHASES", "Saved", "State")

State: TypeAlias = Literal["text", "reasoning", "draft", "section", "call"]
"""`draft`: a call in open reasoning; `section`: behind a section's marker, before a call."""
PHASES: Final[dict[State, Phase]] = {
    "text": "content", "reasoning": "reasoning", "draft": "reasoning",
    "section": "tool_call", "call": "tool_call",
}  # fmt: skip


class Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """As msgspec's `convert` gives it back. `number` and `call`: which reader, and its state."""

    state: State
    head: Head
    held: str
    prefix: str
    read: int
    blank: str
    blank_end: int
    trims: bool
    is_open: OpenPart
    calls: int
    number: int
    call: Any

    def __post_init__(self) -> None:
        if (self.state == "call") != (self.number >= 0):
            raise ValueError("a call is read in the state `call`, and in no other")
