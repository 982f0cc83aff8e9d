"""A call as any codec might have made it."""

from __future__ import annotations

from msgspec.structs import fields

from tokenwire.core.call import Call

__all__ = ("plain",)


def plain(call: Call) -> Call:
    """Without what this codec alone keeps of it, and what it needs brought."""
    values = {field.name: getattr(call, field.name) for field in fields(Call)}
    return Call(**values | {"needs": ()})
