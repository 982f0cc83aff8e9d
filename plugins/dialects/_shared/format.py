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
    """`marker` begins a call, and what stands behind it is read by `reader`. The parser puts what
    it has read so far (the marker, and the section's marker before it) into the reader's `held`."""

    marker: str
    reader: ReaderMaker


class Format(Struct, frozen=True):
    """What `tagged.TaggedParser` reads: reasoning, then text with calls.

    A marker may begin with any visible character. One that several tokens make is a marker too,
    special tokens among them or not.
    """

    think: str = ""
    """Opens reasoning; "" where the family has none. It counts at the start of the answer, or where
    it is a special token."""
    think_end: str = ""
    calls: tuple[CallStart, ...] = ()
    bare: tuple[CallStart, ...] = ()
    """Calls without a marker, recognised only where the first visible character of the answer (or
    of what follows reasoning or a call) begins `marker` ("{", "[", "functools["). The reader is
    given the text from the marker's first character on; what comes to no call is text."""
    around: tuple[str, ...] = ()
    """Markers of a section of calls. Behind a call they are dropped. Elsewhere what stands behind
    one is a call, or else both are text."""
    ends: tuple[str, ...] = ()
    """Ends of calls, dropped behind a call (where its reader has left them); elsewhere text."""
    between: str = " \t\r\n"
    """Characters that may stand between the calls of a section."""
    dropped: tuple[str, ...] = ()
    """Markers that are no text wherever they stand outside calls ("<|START_RESPONSE|>")."""
    answers: tuple[str, ...] = ()
    """Of `dropped`, those that begin the visible answer: they end reasoning that is still open."""
    tokens: tuple[str, ...] = ()
    """Special tokens that call readers read inside calls and that are part of no marker above."""
    is_drafting: bool = True
    """Whether a call that begins inside unclosed reasoning counts (DESIGN: inert in closed
    reasoning, a call in unclosed)."""
    is_interleaved: bool = False
    """Whether `think` opens reasoning behind visible text too, special token or not."""
    trims: str = "\n"
    """White space that belongs to a marker of reasoning beside it, and to a call before it."""
    lead: int = 1
    """How many newlines before a call belong to its marker."""
