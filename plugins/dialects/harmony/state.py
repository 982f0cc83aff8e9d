"""What a harmony parser saves, as msgspec's `convert` gives it back. Reads nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.plugins.dialects._shared.argument_body import BodyState
from tokenwire.plugins.dialects._shared.emitter import OpenPart

__all__ = ("ParserState", "State")

State: TypeAlias = Literal["lead", "header", "text", "reasoning", "call", "after"]
"""`lead`: outside messages, where a header may begin without its marker; `after`: behind a call's
arguments."""


class ParserState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    state: State
    header: str
    has_begun: bool
    is_tokenised: bool
    held: str
    read: int
    is_open: OpenPart
    body: BodyState | None

    def __post_init__(self) -> None:
        if (self.state == "call") != (self.body is not None):
            raise ValueError("arguments are read in the state `call`, and in no other")
