"""Names of tools that stand in a namespace: to the model one name, to the client two fields.

What a model calls is looked up in the table that the request's tools made, so that a name which
only looks so is never taken apart. Knows no items.
"""

from __future__ import annotations

from typing import Final

__all__ = ("flat_name", "own_name")

BETWEEN: Final = "__"
"""Not a point: to some dialects a call is an expression of Python, and there it means something."""


def flat_name(namespace: object, name: str) -> str:
    """What the model is told; `namespace` is a field of the client's, and may be anything."""
    return f"{namespace}{BETWEEN}{name}" if isinstance(namespace, str) and namespace else name


def own_name(namespace: object, flat: str) -> str:
    """The other way round."""
    if not isinstance(namespace, str) or not namespace:
        return flat
    return flat.removeprefix(namespace + BETWEEN)
