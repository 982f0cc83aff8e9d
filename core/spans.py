"""Which ids of a prompt came from whom, by a second render with every client string in brackets.

The brackets are private code points inside a string's outer white space. Where taking them out does
not give the first render, the spans are unknown, and all of it counts as client text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue, Turn
from tokenwire.core.ports.tokenizer import Tokenizer
from tokenwire.core.prompt import Segment, Segments, Shields, Source, Span
from tokenwire.core.shield import PRIVATE, map_strings, restored
from tokenwire.core.token_ids import TokenIds

__all__ = ("segment", "spans_of")

Origin = tuple[int, int]
TOOLS: Origin = (-1, -1)


def segment(dialogue: Dialogue, text: str, render: Callable[[Dialogue], str]) -> Segments:
    """The first render's `text` cut by origin; one `unknown` segment where that cannot be told."""
    used = set(PRIVATE.findall(text))
    free = (point for point in map(chr, range(0x10FFFD, 0xF0000, -1)) if point not in used)
    close = next(free)
    opens: dict[str, Origin] = {}

    def bracket(origin: Origin) -> Callable[[str], str]:
        def change(text: str) -> str:
            core = text.strip()
            point = next(free, None)
            if not core or point is None:
                return text
            opens[point] = origin
            at = text.index(core)
            return f"{text[:at]}{point}{core}{close}{text[at + len(core) :]}"

        return change

    marked = render(_bracketed(dialogue, bracket))
    segments = tuple(_cut(marked, opens, close))
    if "".join(piece.text for piece in segments) != text:
        return Segments((Segment(text, "unknown"),))
    return Segments(segments)


def _bracketed(dialogue: Dialogue, bracket: Callable[[Origin], Callable[[str], str]]) -> Dialogue:
    turns: list[Turn] = []
    for index, turn in enumerate(dialogue.turns):
        parts = tuple(
            map_strings(part, bracket((index, number))) for number, part in enumerate(turn.parts)
        )
        turns.append(replace(turn, parts=parts))
    tools = map_strings(dialogue.tools, bracket(TOOLS))
    return replace(dialogue, turns=tuple(turns), tools=tools)


def _cut(marked: str, opens: dict[str, Origin], close: str) -> Iterator[Segment]:
    origin: Origin | None = None
    begin = 0
    for match in PRIVATE.finditer(marked):
        point = match.group()
        if point != close and point not in opens:
            continue  # Why: a shielded spelling; part of the text.
        yield from _run(marked[begin : match.start()], origin)
        begin = match.end()
        origin = opens.get(point)
    yield from _run(marked[begin:], origin)


def _run(text: str, origin: Origin | None) -> Iterator[Segment]:
    if text and origin is None:
        yield Segment(text, "template")
    elif text and origin is not None:
        yield Segment(text, "client", *origin)


def spans_of(
    segments: Segments, shields: Shields, ids: TokenIds, tokenizer: Tokenizer
) -> tuple[Span, ...]:
    """Spans of ids from segments of text. An id that holds any client text is the client's.

    One `unknown` span where the ids' bytes do not spell the text (a tokenizer that normalizes).
    """
    special = {token.id for token in tokenizer.vocabulary.added if token.special}
    texts = [restored(piece.text, shields).encode() for piece in segments.segments]
    data = [tokenizer.token_bytes(id) for id in ids]
    if b"".join(data) != b"".join(texts):
        return (Span(0, len(ids), "unknown"),) if ids else ()
    owners: list[tuple[Source, int, int]] = []
    index, left = 0, len(texts[0]) if texts else 0
    for id, spelled in zip(ids, data, strict=True):
        while left <= 0 and index + 1 < len(texts):
            index += 1
            left += len(texts[index])
        piece = segments.segments[index]
        left -= len(spelled)
        while left < 0 and index + 1 < len(texts):
            index += 1
            left += len(texts[index])
            if piece.source != "client":
                piece = segments.segments[index]
        source: Source = "special" if id in special else piece.source
        owners.append((source, piece.turn, piece.part))
    borders = [0, *(at for at in range(1, len(owners)) if owners[at] != owners[at - 1]), len(ids)]
    return tuple(
        Span(start, end, *owners[start]) for start, end in pairwise(borders) if start < end
    )
