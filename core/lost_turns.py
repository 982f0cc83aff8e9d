"""What of the turns of a dialogue a protocol cannot say, by name; and a dialogue without it.

A part of `call_losses`, which has the rest. Knows no wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from tokenwire.core.dialogue import (
    Audio,
    ClientPart,
    Dialogue,
    Document,
    Image,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)

__all__ = ("TURN_LOSSES", "closes", "text_of", "without_own")

Lose: TypeAlias = Callable[[Dialogue], Dialogue]
P = TypeVar("P", bound=Part)


def without_own(dialogue: Dialogue) -> Dialogue:
    """Without unknown fields, and blocks that only one protocol knows."""

    def bared(part: P) -> P | None:
        if isinstance(part, Opaque):
            return None
        return replace(part, extra={}) if part.extra else part

    dialogue = _each(bared)(dialogue)
    turns = tuple(replace(turn, extra={}) for turn in dialogue.turns)
    tools = tuple(replace(tool, extra={}) for tool in dialogue.tools)
    return replace(dialogue, turns=turns, tools=tools, extra={})


def closes(dialogue: Dialogue) -> Dialogue:
    """Whether it is gone on with: by what stands at its end alone."""
    last = dialogue.turns[-1] if dialogue.turns else None
    is_open = (
        last is not None
        and last.role == "assistant"
        and bool(last.parts)
        and isinstance(last.parts[-1], Text)
        and not any(isinstance(part, ToolCall) for part in last.parts)
    )
    return replace(dialogue, continue_final=is_open)


def text_of(dialogue: Dialogue) -> str:
    """All text of the turns."""
    texts = (getattr(part, "text", None) for turn in dialogue.turns for part in turn.parts)
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _each(change: Callable[[Part], Part | None]) -> Lose:
    """Of every part, those inside results too, what `change` leaves; turns that it emptied go."""

    def changed(part: Part) -> Part | None:
        if isinstance(part, ToolResult):
            inner = tuple(new for old in part.parts if (new := change(old)) is not None)
            part = replace(part, parts=cast(tuple[ClientPart, ...], inner))
        return change(part)

    def lose(dialogue: Dialogue) -> Dialogue:
        turns: list[Turn] = []
        for turn in dialogue.turns:
            parts = tuple(new for old in turn.parts if (new := changed(old)) is not None)
            if parts or not turn.parts:
                turns.append(replace(turn, parts=parts))
        return replace(dialogue, turns=tuple(turns))

    return lose


def _turns(change: Callable[[Turn], Iterable[Turn]]) -> Lose:
    def lose(dialogue: Dialogue) -> Dialogue:
        turns = tuple(new for turn in dialogue.turns for new in change(turn))
        return replace(dialogue, turns=turns)

    return lose


def _not_audio(part: Part) -> Part | None:
    return None if isinstance(part, Audio) else part


def _no_detail(part: Part) -> Part:
    return replace(part, detail=None) if isinstance(part, Image) else part


def _no_url(part: Part) -> Part | None:
    return None if isinstance(part, Document) and part.url is not None else part


def _text_as_data(part: Part) -> Part:
    if not isinstance(part, Document) or part.text is None:
        return part
    kind = part.media_type or "text/plain"
    return replace(part, text=None, data=part.text.encode(), media_type=kind)


def _title_as_name(part: Part) -> Part:
    if not isinstance(part, Document):
        return part
    return replace(part, name=part.title if part.name is None else part.name, title=None)


def _name_as_title(part: Part) -> Part:
    if not isinstance(part, Document):
        return part
    return replace(part, title=part.name if part.title is None else part.title, name=None)


def _unsigned(part: Part) -> Part:
    return replace(part, signature=None) if isinstance(part, Reasoning) else part


def _unsealed(part: Part) -> Part:
    return replace(part, redacted=None) if isinstance(part, Reasoning) else part


def _no_summary(part: Part) -> Part:
    is_sealed = isinstance(part, Reasoning) and part.redacted is not None
    return replace(part, text="", signature=None) if is_sealed else part


def _no_error(part: Part) -> Part:
    return replace(part, is_error=False) if isinstance(part, ToolResult) else part


def _named_by_calls(dialogue: Dialogue) -> Dialogue:
    names: dict[str, str] = {}

    def named(part: Part) -> Part:
        if isinstance(part, ToolCall):
            names[part.id] = part.name
        return replace(part, name=names.get(part.call_id)) if isinstance(part, ToolResult) else part

    return _each(named)(dialogue)


def _ordered(turn: Turn) -> Iterable[Turn]:
    if turn.role != "assistant":
        return (turn,)
    thoughts = [part for part in turn.parts if isinstance(part, Reasoning)]
    calls = [part for part in turn.parts if isinstance(part, ToolCall)]
    rest = [part for part in turn.parts if not isinstance(part, Reasoning | ToolCall)]
    if len(thoughts) > 1:
        thoughts = [Reasoning("".join(part.text for part in thoughts))]
    return (replace(turn, parts=(*thoughts, *rest, *calls)),)


def _filled(turn: Turn) -> Iterable[Turn]:
    """Without empty text of the assistant."""
    if turn.role != "assistant":
        return (turn,)
    parts = tuple(p for p in turn.parts if not isinstance(p, Text | Reasoning) or p.text)
    return (replace(turn, parts=parts),)


def _result_by_result(turn: Turn) -> Iterable[Turn]:
    if turn.role != "tool":
        return (turn,)
    return (replace(turn, parts=(part,)) for part in turn.parts)


def _joined(dialogue: Dialogue, *roles: Role, first: bool) -> Dialogue:
    """Neighbours of these roles joined; a system turn at the front stays alone unless `first`."""
    turns: list[Turn] = []
    for turn in dialogue.turns:
        if turns and turns[-1].role == turn.role and turn.role in roles:
            is_front = len(turns) == 1 and turn.role == "system" and bool(turns[0].parts)
            if first or not is_front:
                turns[-1] = replace(turns[-1], parts=turns[-1].parts + turn.parts)
                continue
        turns.append(turn)
    return replace(dialogue, turns=tuple(turns))


TURN_LOSSES: Final[Mapping[str, tuple[str, Lose]]] = {
    "developer": (
        "the role `developer`: it becomes `system`",
        _turns(lambda t: (replace(t, role="system") if t.role == "developer" else t,)),
    ),
    "turn_name": ("names of those who speak", _turns(lambda turn: (replace(turn, name=None),))),
    "audio": ("recordings", _each(_not_audio)),
    "image_detail": ("the wished resolution of a picture", _each(_no_detail)),
    "document_url": ("documents by URL", _each(_no_url)),
    "document_text": ("that a document is text: it becomes bytes", _each(_text_as_data)),
    "document_title": (
        "a document's title: it becomes its name, where it has none",
        _each(_title_as_name),
    ),
    "document_name": (
        "a document's name: it becomes its title, where it has none",
        _each(_name_as_title),
    ),
    "signature": ("signatures of reasoning", _each(_unsigned)),
    "sealed": ("sealed reasoning: its text is left, be it empty", _each(_unsealed)),
    "sealed_summary": ("the text beside sealed reasoning", _each(_no_summary)),
    "result_error": ("that a tool failed", _each(_no_error)),
    "result_name": ("a result's own name: it has the call's", _named_by_calls),
    "part_order": (
        "the order of an answer's parts: reasoning in one piece, then text and media, then calls",
        _turns(_ordered),
    ),
    "empty_part": ("empty text and reasoning of the assistant", _turns(_filled)),
    "result_cuts": (
        "which results stand in one turn: each is a turn of its own",
        _turns(_result_by_result),
    ),
    "empty_turn": (
        "turns without parts, but for those of the assistant",
        _turns(lambda turn: (turn,) if turn.parts or turn.role == "assistant" else ()),
    ),
    "empty_answer": (
        "turns of the assistant without parts",
        _turns(lambda turn: (turn,) if turn.parts or turn.role != "assistant" else ()),
    ),
    "answer_cuts": (
        "where turns of the assistant end that follow one another: they are one",
        lambda dialogue: _joined(dialogue, "assistant", first=True),
    ),
    "turn_cuts": (
        "where turns of one role end that follow one another: they are one, but for a first one of"
        " the system",
        lambda dialogue: _joined(
            dialogue, "system", "user", "assistant", "tool", "developer", first=False
        ),
    ),
}
