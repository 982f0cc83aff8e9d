"""What is saved of arguments that are being read. Reads nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ("ArgumentsState", "Bracket", "Place")

Bracket: TypeAlias = Literal["{", "["]
Place: TypeAlias = Literal["key", "colon", "value", "string", "json", "word", "next", "over"]
"""`json`: in a string that JSON's own quotes hold; `next`: behind a value."""


class ArgumentsState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """As msgspec's `convert` gives it back. `path`: of each open bracket, itself and the key of the
    value that is being read in it."""

    place: Place
    path: list[tuple[Bracket, str]]
    word: str
    tail: str
    is_key: bool
    is_first: bool
    is_escaped: bool

    def __post_init__(self) -> None:
        if not self.path and self.place not in ("value", "over"):
            raise ValueError("outside all brackets there is no key and no value")
        in_key = self.is_key and self.place in ("string", "json", "word")
        if (in_key or self.place in ("key", "colon")) and self.path[-1][0] != "{":
            raise ValueError("a key stands in an object")
