"""What the machines of this family save, as msgspec's `convert` gives it back. Reads nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.plugins.dialects._shared.emitter import OpenPart
from tokenwire.plugins.dialects._shared.json_stream import CursorState

__all__ = ("CallState", "ParserState", "Place", "State", "Wrote")

State: TypeAlias = Literal["text", "reasoning", "draft", "call", "after"]
"""Of a parser. `draft`: a call in open reasoning; `after`: behind a call's JSON."""
Place: TypeAlias = Literal["open", "member", "colon", "value", "key", "name", "arguments", "other"]
"""In a call's JSON."""
Wrote: TypeAlias = Literal["", "part", "all"]
"""How much of a call's arguments went out."""


class CallState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    place: Place
    key: str
    word: str
    waiting: str
    """Arguments before their name."""
    cursor: CursorState
    held: str
    is_started: bool
    wrote: Wrote


class ParserState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    state: State
    is_opening: bool
    had_call: bool
    held: str
    read: int
    blank: str
    trims: bool
    is_open: OpenPart
    call: CallState | None

    def __post_init__(self) -> None:
        if (self.state == "call") != (self.call is not None):
            raise ValueError("a call is read in the state `call`, and in no other")
