"""Why a conversation's next prompt does not go on from its last one, and from which token on. Pure.

Asked only where nothing could be spliced, so it may cost a render or two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.conversation import Digests
from tokenwire.core.dialogue import Dialogue, Reasoning, Text, ToolCall, Turn
from tokenwire.core.prompt import Segments
from tokenwire.core.splice import Ask, Splicer
from tokenwire.core.token_history import Kept
from tokenwire.core.token_ids import TokenIds

__all__ = ("CAUSES", "Break", "Cause", "Fresh", "explain")

Cause: TypeAlias = Literal[
    "tools",
    "template_args",
    "reasoning_settings",
    "system_changed",
    "turn_changed",
    "turns_removed",
    "template_date",
    "generation_prompt",
    "template_rewrites",
    "reasoning_dropped",
    "reasoning_not_returned",
    "arguments_changed",
    "answer_changed",
    "tokenizer",
]

CAUSES: Final[dict[Cause, str]] = {
    "tools": "the tools differ from the last request's; they stand before all turns",
    "template_args": "arguments for the chat template differ",
    "reasoning_settings": "reasoning was switched or its effort changed, and the template shows it",
    "system_changed": "a system turn differs: a date or a counter in it, perhaps",
    "turn_changed": "an earlier turn differs from what was sent before",
    "turns_removed": "earlier turns are left out: the client shortened its history",
    "template_date": "the chat template writes the date, and it is another day",
    "generation_prompt": "the template begins an answer otherwise than it writes it as history",
    "template_rewrites": "the template writes an earlier turn otherwise once others follow it",
    "reasoning_dropped": "the template leaves out the reasoning of earlier turns",
    "reasoning_not_returned": "the client did not send the answer's reasoning back",
    "arguments_changed": "a call's name or arguments are not those that the model wrote",
    "answer_changed": "the assistant's text is not what the model wrote",
    "tokenizer": "the text is the same, but for private code points that a client wrote, "
    "or special tokens that no part shows",
}
"""What each means, for people."""

GROUND: Final[dict[str, Cause]] = {
    "tools": "tools",
    "template_args": "template_args",
    "reasoning": "reasoning_settings",
}


class Break(Struct, frozen=True):
    """`token`: the first that differs, counted from 0; `lost`: how many were there from it on."""

    cause: Cause
    where: str
    """What of the request, or "chat_template"."""
    token: int
    lost: int


class Fresh(Struct, frozen=True):
    """The new request, as far as it matters here."""

    dialogue: Dialogue
    digests: Digests
    ask: Ask
    ids: TokenIds
    text_at: Callable[[float], str]
    """Its text, had it come at another time (Unix seconds)."""
    segments: Callable[[], Segments]
    """Its text cut by origin."""


def explain(splicer: Splicer, kept: Kept, fresh: Fresh) -> Break:
    answer = TokenIds.from_le(kept.answers[0].ids) if kept.answers else TokenIds()
    old = TokenIds(kept.prompt + answer)
    token = _common(old, fresh.ids)
    cause, where = _cause(splicer, kept, fresh)
    return Break(cause, where, token, len(old) - token)


def _cause(splicer: Splicer, kept: Kept, fresh: Fresh) -> tuple[Cause, str]:
    for name, cause in GROUND.items():
        if kept.digests.ground.get(name) != fresh.digests.ground.get(name):
            return cause, name
    old, new = kept.digests.turns, fresh.digests.turns
    same = _common(old, new)
    if same < len(old):
        return _changed(old, new, same, fresh.dialogue)
    if not splicer.has_prompt(fresh.ask.text, kept):
        return _other_prompt(splicer, kept, fresh)
    return _other_answer(splicer, kept, fresh, fresh.dialogue.turns[same:], f"turns[{same}]")


def _changed(
    old: Sequence[bytes], new: Sequence[bytes], at: int, dialogue: Dialogue
) -> tuple[Cause, str]:
    where = f"turns[{at}]"
    if at >= len(new) or new[at] in old[at + 1 :]:
        return "turns_removed", where
    is_system = dialogue.turns[at].role in ("system", "developer")
    return ("system_changed" if is_system else "turn_changed"), where


def _other_prompt(splicer: Splicer, kept: Kept, fresh: Fresh) -> tuple[Cause, str]:
    """The turns are the same, and their text is not."""
    if splicer.has_prompt(fresh.text_at(kept.now), kept):
        return "template_date", "chat_template"
    before = splicer.text(kept.prompt)
    at = _common(before, splicer.shown(fresh.ask))
    if not splicer.ends_turn(before, at):
        return "generation_prompt", "chat_template"
    turn = _turn_at(fresh.segments(), at)
    if turn < 0:
        return "template_rewrites", "chat_template"
    parts = fresh.dialogue.turns[turn].parts
    dropped = any(isinstance(part, Reasoning) for part in parts)
    return ("reasoning_dropped" if dropped else "template_rewrites"), f"turns[{turn}]"


def _other_answer(
    splicer: Splicer, kept: Kept, fresh: Fresh, turns: Sequence[Turn], where: str
) -> tuple[Cause, str]:
    """The prompt's text is the same, and the answer's is not."""
    if not kept.answers or not turns:
        return "tokenizer", where
    said = splicer.said(fresh.ask, kept.answers[0], kept.phase)
    shown = splicer.answer_text(fresh.ask.text, kept.characters)
    read = [] if shown is None else splicer.rendered(fresh.ask, shown, kept.phase)
    if said == read:
        return "tokenizer", where
    if _of(said, "reasoning") != _of(read, "reasoning"):
        returned = any(isinstance(part, Reasoning) for part in turns[0].parts)
        if _of(said, "reasoning") and not returned:
            return "reasoning_not_returned", where
        if not _of(read, "reasoning"):
            return "reasoning_dropped", where
    if _of(said, "tool_call") != _of(read, "tool_call"):
        calls = [part.name for part in turns[0].parts if isinstance(part, ToolCall)]
        is_ours = calls == [call[1] for call in _of(said, "tool_call")]
        return ("arguments_changed" if is_ours else "answer_changed"), where
    texts = [part.text.strip() for part in turns[0].parts if isinstance(part, Text)]
    is_sent = texts == [text[1] for text in _of(said, "text")]
    return ("template_rewrites" if is_sent else "answer_changed"), where


def _of(parts: Sequence[tuple[str, ...]], kind: str) -> list[tuple[str, ...]]:
    return [part for part in parts if part[0] == kind]


def _turn_at(segments: Segments, at: int) -> int:
    """Of the first segment of a turn that reaches to `at`; -1: there is none."""
    end = 0
    for segment in segments.segments:
        end += len(segment.text)
        if end >= at and segment.turn >= 0:
            return segment.turn
    return -1


def _common(one: Sequence[object] | str, other: Sequence[object] | str) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
