"""One family's wire shape as data: which markers mean what, and which machine reads a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import CallReader

__all__ = ("CallStart", "Format", "ReaderMaker")

ReaderMaker: TypeAlias = Callable[[tuple[ToolSpec, ...]], CallReader]


class CallStart(Struct, frozen=True):
    """`marker` begins a call, and what stands behind it is read by `reader`."""

    marker: str
    reader: ReaderMaker


class Format(Struct, frozen=True):
    """What `tagged.TaggedParser` reads: reasoning, then text with calls."""

    think: str = ""
    """Opens reasoning; "" where the family has none."""
    think_end: str = ""
    calls: tuple[CallStart, ...] = ()
    bare: tuple[CallStart, ...] = ()
    """Calls without a marker, recognised only where the first visible character of the answer (or
    of what follows a call) begins `marker` ("{", "[", "functools[")."""
    around: tuple[str, ...] = ()
    """Markers of a section of calls, and ends of calls: dropped where calls may stand."""
    between: str = " \t\r\n"
    """Characters that may stand between the calls of a section."""
    dropped: tuple[str, ...] = ()
    """Markers that are no text wherever they stand outside calls ("<|START_RESPONSE|>")."""
    is_drafting: bool = True
    """Whether a call that begins inside unclosed reasoning counts (DESIGN: inert in closed
    reasoning, a call in unclosed)."""
