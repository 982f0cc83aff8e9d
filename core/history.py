"""Assistant turns as clients send them back: reasoning that sits in text is lifted into a part."""

from __future__ import annotations

from msgspec.structs import replace

from tokenwire.core.dialogue import Dialogue, Reasoning, Text, Turn

__all__ = ("lift_reasoning",)


def lift_reasoning(dialogue: Dialogue, start: str, end: str) -> Dialogue:
    """Only a block that begins an assistant turn's text, spelled with the dialect's own markers, is
    reasoning; anything else in client text stays text. `start` empty: the dialect has none."""
    if not start:
        return dialogue
    turns = tuple(_lift(turn, start, end) for turn in dialogue.turns)
    if all(new is old for new, old in zip(turns, dialogue.turns, strict=True)):
        return dialogue
    return replace(dialogue, turns=turns)


def _lift(turn: Turn, start: str, end: str) -> Turn:
    if turn.role != "assistant" or not turn.parts:
        return turn
    first = turn.parts[0]
    if not isinstance(first, Text) or not first.text.lstrip().startswith(start):
        return turn
    inside, found, rest = first.text.lstrip()[len(start) :].partition(end)
    if not found:
        return turn
    lifted: tuple[Reasoning | Text, ...] = (Reasoning(inside.strip("\n")),)
    if rest.lstrip("\n"):
        lifted += (Text(rest.lstrip("\n"), first.extra),)
    return replace(turn, parts=(*lifted, *turn.parts[1:]))
