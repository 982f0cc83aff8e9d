"""A format's markers, and which of them are looked for where. Made once a model; reads nothing."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

from tokenwire.plugins.dialects._shared.format import CallStart, Format
from tokenwire.plugins.dialects._shared.tags import Tags

__all__ = ("NOT_QUICK", "Head", "Quick", "Tables", "quick_test")

Head: TypeAlias = Literal["", "start", "thought", "call"]
"""What stands before the next visible character, white space aside: text; nothing; reasoning; a
call."""


Quick: TypeAlias = tuple[str, str, frozenset[str], str]
"""When a piece goes out as it stands: when the first two (if the second is not "") and none of the
set is in it, and its last character is not in the fourth. A first of "" is in every piece."""
NOT_QUICK: Final[Quick] = ("", "", frozenset(), "")


def quick_test(stops: str, tail: str) -> Quick:
    """For pieces that must have none of `stops` and not end with one of `tail`."""
    if len(stops) > 2:
        return "", "", frozenset(stops), tail
    return stops[:1] or "\n", stops[1:], frozenset(), tail


@final
class Tables:
    """`Tags` by place. In those of two, the second is for answers with calls."""

    __slots__ = (
        "again", "closing", "format", "heads", "later", "numbers", "parts", "quick", "reasoning",
        "section", "starts",
    )  # fmt: skip

    def __init__(self, format: Format) -> None:
        self.format: Final = format
        self.starts: Final[tuple[CallStart, ...]] = (*format.calls, *format.bare)
        """What a call can begin with; saved states name them by their number."""
        self.numbers: Final = {start.marker: number for number, start in enumerate(self.starts)}
        assert len(self.numbers) == len(self.starts), "two calls begin with one marker"
        think = tuple(filter(None, (format.think, format.think_end)))
        opener = think[:1] if format.is_interleaved else ()
        calls = tuple(start.marker for start in format.calls)
        bare = tuple(start.marker for start in format.bare)
        opening = (*calls, *format.around)
        self.later: Final = _both((*opener, *format.dropped), opening)
        self.heads: Final[dict[Head, tuple[Tags, Tags]]] = {
            "start": _both((*think, *format.dropped), (*opening, *bare)),
            "thought": _both((*opener, *format.dropped), (*opening, *bare)),
            "call": _both((*opener, *format.dropped), (*opening, *bare, *format.ends)),
        }
        self.section: Final = Tags((*opening, *format.ends))
        drafts = opening if format.is_drafting else ()
        self.reasoning: Final = _both((*think[1:], *format.dropped), drafts)
        self.closing: Final = Tags(think[1:])
        self.again: Final = Tags(think[:1])
        """At the head of reasoning that the prompt has opened."""
        self.quick: Final = tuple(
            (quick_test(text.firsts, "\n"), quick_test(thought.firsts, format.trims))
            for text, thought in zip(self.later, self.reasoning, strict=True)
        )
        """In text and in reasoning."""
        self.parts: Final = (*think, *opening, *format.ends, *format.dropped)

    def is_read(self, special: str, *, in_call: bool) -> bool:
        """Whether a special token is a marker, or part of one; all others are dropped."""
        if in_call and special in self.format.tokens:
            return True
        return any(special in marker for marker in self.parts)


def _both(always: tuple[str, ...], with_calls: tuple[str, ...]) -> tuple[Tags, Tags]:
    return Tags(always), Tags((*always, *with_calls))
