"""How engines log a received job: ids as integers, anything else as kind, length and sha256.

No text that a client sent, nor any name made from it, can be read from what this returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from tokenwire.core.token_ids import TokenIds

__all__ = ("describe",)


def describe(value: object) -> str:
    """One line: fields that are unset are left out, numbers stand as they are."""
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case TokenIds():
            return f"[{','.join(map(str, value))}]"
        case str():
            return _digest("str", value.encode("utf-8", "surrogatepass"), len(value))
        case bytes():
            return _digest("bytes", value, len(value))
        case Struct():
            return _struct(value)
        case Mapping():
            entries = (f"{describe(key)}: {describe(entry)}" for key, entry in value.items())
            return f"{{{', '.join(entries)}}}"
        case list() | tuple():
            return f"({', '.join(map(describe, value))})"
        case _:
            return type(value).__name__


def _struct(value: Struct) -> str:
    shown: list[str] = []
    for field in fields(value):
        entry = getattr(value, field.name)
        is_unset = entry == field.default or (
            field.default_factory is not NODEFAULT and entry == field.default_factory()
        )
        if not is_unset:
            shown.append(f"{field.name}={describe(entry)}")
    return f"{type(value).__name__}({', '.join(shown)})"


def _digest(kind: str, data: bytes, length: int) -> str:
    return f"{kind}[{length}] sha256:{sha256(data).hexdigest()}"
