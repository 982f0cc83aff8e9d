"""Settings of the template `jinja`. Imports no Jinja, so that listing plugins stays cheap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

__all__ = ("Settings",)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the template is, and how dialogues are bent to it."""

    source: str | None = None
    """The template's text."""
    path: str | None = None
    """A file with it. Neither: the checkpoint's own."""
    joiner: str = "\n"
    """Between text parts of one turn, for templates that take text only."""
    merge_system: Literal["auto", "never", "front"] = "auto"
    """Several system turns: joined at the front where the template loses or refuses them; as sent;
    always joined."""
    roles: Mapping[str, str] = {}
    """Renames roles for the template."""
    max_steps: int = 2_000_000
    """Work that one render may do: about one template instruction, or 1,024 characters copied."""
    max_output: int = 32_000_000
    """Characters of one rendered prompt."""
