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
    """Capabilities (`tokens.CAPABILITIES`, "grammar:KIND") that an engine must declare for it, and
    what the model's dialect must be able to do, as "dialect:" with: `tools` (its template shows
    them and its parser reads their calls), `calls`, `call_grammar`, `documents`, `template_args`
    (any variable that a request may set), `reasoning_effort`, `thinking`, `reasoning_block`,
    `open_end`."""
    otherwise: How = "ignored"
    """What becomes of it where one of `needs` is lacking."""
