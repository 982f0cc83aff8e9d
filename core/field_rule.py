"""What a protocol does with one field of its requests; capability tables are made from these."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ("FieldRule", "How")

How: TypeAlias = Literal["used", "emulated", "refused", "ignored"]
"""used: as the protocol says. emulated: by other means than the protocol's own servers use.
refused: 400, naming the field. ignored: named in the response header `x-tokenwire-ignored`."""


class FieldRule(Struct, frozen=True):
    """One row of a protocol's capability table."""

    name: str
    """Path in the body: "seed", "thinking.budget_tokens", "messages[].name"."""
    how: How
    what: str = ""
    """One plain sentence or less: its meaning, how it is emulated, why it is refused."""
    needs: tuple[str, ...] = ()
    """Capabilities (`tokens.CAPABILITIES`, "grammar:KIND") that an engine must declare for it."""
    otherwise: How = "ignored"
    """What becomes of it where an engine lacks one of `needs`."""
