"""`[plugins.messages]`: what of this protocol is a matter of taste."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ("Settings",)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[plugins.messages]`."""

    billing_header: Literal["drop", "keep"] = "drop"
    """What becomes of `x-anthropic-billing-header: ...` at the start of a system block: some agents
    put it there, other in every request, so that no prefix of a prompt is ever found in a cache."""
    redact_thinking: Literal["asked", "always", "never"] = "asked"
    """When thinking is sent sealed (`redacted_thinking`), for our own eyes alone: where the beta
    flag `redact-thinking-...` asks for it, always, or never."""
