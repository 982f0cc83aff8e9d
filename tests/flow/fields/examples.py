"""What shows that a protocol does with a field what its capability table says.

A module beside this one, called as the codec, has `LEAST` (a request that is complete without any
of the fields), and `EXAMPLES`: for each row of the table the values that show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

__all__ = ("Example", "Examples")


class Example(Struct, frozen=True):
    """Two requests that differ in the field alone, both made from the protocol's least one.

    A row that is `used` or `emulated` is shown by their answers or jobs differing; one that is
    `refused` by 400 for the second, naming the field; one that is `ignored` by the response header.
    """

    given: Mapping[str, Any]
    """What the second request has, and the first has not. For a field inside another: the whole of
    the outermost one. A value of `...` takes the key out of the least request."""
    beside: Mapping[str, Any] = {}
    """What both have."""
    instead: Mapping[str, Any] | None = None
    """What the first has in place of `given`, for fields that cannot be left out."""
    headers: Mapping[str, str] = {}
    """Of the second."""
    named: str = ""
    """How the header or the error's `param` names it, where not by the row's own name."""
    lacking: str = ""
    """The same, where the engine lacks what the row needs."""
    elsewhere: str = ""
    """A test that shows the row, where a request and its answer cannot: "FILE::TEST"."""
    model: str = "m"


class Examples(Struct, frozen=True):
    """A protocol's."""

    path: str
    least: Mapping[str, Any]
    examples: Mapping[str, Example]
    volatile: tuple[str, ...] = ("id", "created", "created_at", "completed_at")
    """Keys of an answer that differ from request to request, at any depth."""
