"""A prompt for people: colour says whose text it is, line breaks are kept, control codes are shown.

Pure: values in, rich text out. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category

from rich.table import Table
from rich.text import Text

from tokenwire.core.prompt import Piece, Prompt, Source, Span

__all__ = ("TURN_COLOURS", "legend", "paint", "span_table", "visible")

TURN_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")
"""Of turns 0, 1, ...; then again from the first."""
SOURCE_STYLES: dict[Source, str] = {
    "template": "dim",
    "client": "bold",
    "special": "reverse",
    "unknown": "italic",
}
MOST_IDS = 8


def paint(prompt: Prompt, pieces: Sequence[Piece]) -> Text:
    """The prompt's text, id by id: colour by turn, style by source, special tokens reversed.

    `pieces`: one an id, whose texts add up to the prompt. Raises ValueError for another number.
    """
    _check(prompt, pieces)
    painted = Text()
    for span in _covering(prompt):
        for piece in pieces[span.start : span.end]:
            style = _style("special" if piece.special else span.source, span.turn)
            painted.append(visible(piece.text), style=style)
    return painted


def legend(prompt: Prompt) -> Text:
    """What the colours and styles of this prompt mean, in one line."""
    spans = _covering(prompt)
    line = Text()
    sources: dict[Source, None] = {span.source: None for span in spans}
    for source in sources:
        line.append(source, style=SOURCE_STYLES[source]).append("  ")
    for turn in sorted({span.turn for span in spans if span.turn >= 0}):
        line.append(f"turn {turn}", style=_colour(turn)).append("  ")
    return line


def span_table(prompt: Prompt, pieces: Sequence[Piece]) -> Table:
    """Each span: where it is, whose, its ids and its text. Raises ValueError as `paint` does."""
    _check(prompt, pieces)
    table = Table("ids at", "source", "turn", "part", "ids", "text", box=None, pad_edge=False)
    for span in _covering(prompt):
        ids = [str(id) for id in prompt.ids[span.start : span.end][:MOST_IDS]]
        more = f" ... {span.end - span.start} in all" * (span.end - span.start > MOST_IDS)
        text = "".join(piece.text for piece in pieces[span.start : span.end])
        table.add_row(
            f"{span.start}:{span.end}",
            Text(span.source, _style(span.source, span.turn)),
            str(span.turn) if span.turn >= 0 else "",
            str(span.part) if span.part >= 0 else "",
            " ".join(ids) + more,
            Text(repr(text)),
        )
    return table


def visible(text: str) -> str:
    """Text that cannot steer a terminal: all but line breaks, tabs, spaces of any script, joined
    emoji and printing characters is escaped."""
    return "".join(
        char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in text
    )


def _is_harmless(char: str) -> bool:
    return char.isprintable() or char in "\n\t\u200d" or category(char) == "Zs"


def _check(prompt: Prompt, pieces: Sequence[Piece]) -> None:
    if len(pieces) != len(prompt.ids):
        raise ValueError(f"wanted one piece an id, {len(prompt.ids)}, got {len(pieces)}")


def _covering(prompt: Prompt) -> tuple[Span, ...]:
    """The spans; one of unknown origin where none were asked for."""
    return prompt.spans or (Span(0, len(prompt.ids), "unknown"),)


def _style(source: Source, turn: int) -> str:
    return f"{SOURCE_STYLES[source]} {_colour(turn)}".strip()


def _colour(turn: int) -> str:
    return TURN_COLOURS[turn % len(TURN_COLOURS)] if turn >= 0 else ""
