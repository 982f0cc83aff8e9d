"""What a template makes of a dialogue: text with provenance, then ids with spans. No wire names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.conversation import Digests
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import MediaItem

__all__ = (
    "CacheMark",
    "HistoryNote",
    "HistoryTrace",
    "Phase",
    "Piece",
    "Prompt",
    "Segment",
    "Segments",
    "Source",
    "Span",
)

Phase: TypeAlias = Literal["content", "reasoning", "tool_call"]
Source: TypeAlias = Literal["template", "client", "special", "unknown"]


class Segment(Struct, frozen=True):
    """A run of rendered text with one origin. `turn` and `part` index the dialogue; -1: none."""

    text: str
    source: Source
    turn: int = -1
    part: int = -1


class Segments(Struct, frozen=True):
    """Rendered text. A template that cannot tell whose text it is gives one `unknown` segment."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


class Span(Struct, frozen=True):
    """Ids [start, end) of a prompt and where they came from. Spans are disjoint and cover all."""

    start: int
    end: int
    source: Source
    turn: int = -1
    part: int = -1


class CacheMark(Struct, frozen=True):
    """A prompt's first `tokens` ids are worth keeping, for `ttl_s` seconds (None: as usual)."""

    tokens: int
    ttl_s: int | None = None


class HistoryNote(Struct, frozen=True):
    """Whether a prompt goes on from the last turn's own ids."""

    outcome: Literal["spliced", "diverged"]
    tokens: int
    """How many are the last turn's own: for `diverged`, up to the first that differs."""
    cause: str = ""
    where: str = ""
    """What of the request, or of the template, is to blame."""
    lost: int = 0
    """How many of the last turn's tokens come behind."""


class HistoryTrace(Struct, frozen=True):
    """What of a prompt must be kept so that the next turn can go on from it."""

    digests: Digests
    text: str
    """As rendered, client spellings hidden."""
    now: float
    """Unix seconds, as the template was told."""


class Prompt(Struct, frozen=True):
    """What the engine is given, and what is known of it."""

    ids: TokenIds
    text: str
    phase: Phase
    """In which the output starts: the template may have opened a reasoning block already."""
    fingerprint: str
    """sha256 hex over template, tokenizer and model revision."""
    spans: tuple[Span, ...] = ()
    """Empty unless asked for."""
    marks: tuple[CacheMark, ...] = ()
    """By rising number of tokens."""
    history: HistoryNote | None = None
    """None: there was nothing to go on from."""
    trace: HistoryTrace | None = None
    """None: nothing can go on from this one."""
    media: tuple[MediaItem, ...] = ()
    """Pictures and recordings, in the order of their placeholders in `ids`."""


class Piece(Struct, frozen=True, gc=False):
    """What the detokenizer says of one id (or of several without specials): its text.

    `special` pieces are tokens that the vocabulary marks special; their text is the spelling.
    """

    text: str
    special: bool = False
    id: int = -1


Shields: TypeAlias = Mapping[str, str]
"""Private code point -> the forbidden spelling that a client wrote (shield.py)."""
