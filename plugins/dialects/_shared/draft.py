"""Judges a tool call that begins inside open reasoning. Stateless: it is asked about held text.

The rule: a call counts when nothing but calls and white space follows it up to the answer's end and
the reasoning was never closed. It is a draft, inert and part of the reasoning, as soon as the
closing marker or any other text comes, or the answer ends before a tool is named. All of these need
text that has not come yet, so the text from the call's marker on is held, up to MAX_HELD
characters; a longer call counts, for a model that forgets to close its reasoning loses the whole
answer otherwise, and drafts of such length are rare.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from tokenwire.core.dialogue import ToolSpec
from tokenwire.plugins.dialects._shared.call_reader import Outcome
from tokenwire.plugins.dialects._shared.emitter import Emitter
from tokenwire.plugins.dialects._shared.tables import Tables
from tokenwire.plugins.dialects._shared.tags import NO_MARKER, PARTIAL

__all__ = ("MAX_HELD", "Verdict", "judge")

MAX_HELD: Final = 4096


class Verdict(Enum):
    """`judge`'s answer; a draft is given out up to the index that comes with it."""

    OPEN = "open"
    DRAFT = "draft"
    CALL = "call"


def judge(
    held: str, tables: Tables, tools: tuple[ToolSpec, ...], *, is_final: bool
) -> tuple[Verdict, int]:
    """`held` begins with the marker of a call or of a section of calls. `is_final`: nothing
    follows it."""
    limit = held[:MAX_HELD]
    # Why a beginning too: what may close the reasoning must not be read as part of the call.
    closed, marker = tables.closing.find(limit, 0, is_final=is_final or len(held) > MAX_HELD)
    stop, calls = _first_other(limit[:closed], tables, tools)
    if stop is not None:
        return Verdict.DRAFT, stop
    if marker == tables.format.think_end:
        return Verdict.DRAFT, closed
    if is_final and not calls:
        return Verdict.DRAFT, len(held)
    return (Verdict.CALL if len(held) > MAX_HELD else Verdict.OPEN), len(held)


def _first_other(text: str, tables: Tables, tools: tuple[ToolSpec, ...]) -> tuple[int | None, int]:
    """Where in `text` something stands that is neither call nor white space (None: nowhere yet),
    and how many calls have a name."""
    at, emit = 0, Emitter(0)
    while at < len(text):
        if text[at].isspace() or text[at] in tables.format.between:
            at += 1
            continue
        marker = tables.section.at(text, at)
        if marker == PARTIAL:
            return None, emit.calls
        if marker == NO_MARKER:
            return at, emit.calls
        at += len(marker)
        number = tables.numbers.get(marker)
        if number is None:
            continue
        reader = tables.starts[number].reader(tools)
        reader.held = marker
        at, outcome = reader.feed(text, at, 0, emit, is_final=False)
        if outcome is Outcome.MORE:
            return None, emit.calls
        if outcome is Outcome.BROKEN and not reader.is_started:
            return at, emit.calls
    return None, emit.calls
