"""What can be set of the tokenizer `hf`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ("HfSettings",)


class HfSettings(Struct, frozen=True, forbid_unknown_fields=True):
    path: str | None = None
    """A tokenizer.json, or the folder it is in. None: the model's own."""
    fast: Literal["auto", "off"] = "auto"
    """auto: plain text goes through fastokens where it is installed and a probe gives equal ids."""
