"""The state of a reader of JSON calls between two pieces, as it is saved."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.plugins.dialects._shared.json_stream import CursorState

__all__ = ("Place", "Saved", "Wrote")

Place: TypeAlias = Literal[
    "open", "member", "colon", "value", "key", "name", "id", "arguments", "other", "after"
]
"""In a call's JSON; `after`: behind it."""
Wrote: TypeAlias = Literal["", "part", "all"]
"""How much of a call's arguments went out."""


class Saved(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """As msgspec's `convert` gives it back."""

    place: Place
    key: str
    word: str
    waiting: str
    """Arguments before their name."""
    call_id: str | None
    depth: int
    cursor: CursorState
    held: str
    is_started: bool
    wrote: Wrote
    has_other: bool
    """An object or a list stood under a key that has no meaning."""
