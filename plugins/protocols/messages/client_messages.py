"""Turns to `system` and `messages`: turns.py turned round. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from tokenwire.core.dialogue import Audio, Dialogue, Opaque, Part, Text, Turn
from tokenwire.plugins.protocols.messages.client_blocks import block_of, is_bare
from tokenwire.plugins.protocols.messages.turns import PREAMBLE, SHAPE

__all__ = ("written",)

Json = dict[str, object]
Controls = Mapping[tuple[int, int], Json]

ROLES: Final = {"tool": "user", "developer": "system"}


def written(dialogue: Dialogue, controls: Controls) -> Json:
    """As the messages were cut when they were read, where they still have those parts; else a
    message a turn."""
    turns = list(enumerate(dialogue.turns))
    shape = dialogue.extra.get(SHAPE)
    if isinstance(shape, Mapping) and (kept := _as_cut(turns, shape, controls)) is not None:
        system = cast("list[Json]", kept["system"])
        is_text = shape["system"] == "text"
    else:
        system, is_text = [], True
        if turns and _is_system_prompt(turns[0][1]):
            k, turn = turns.pop(0)
            system = _blocks(turn, k, controls)
        kept = {"messages": [_message(turn, k, controls) for k, turn in turns if _is_said(turn)]}
    system = _with_preamble(system, dialogue.extra.get(PREAMBLE))
    is_text &= len(system) == 1 and system[0].keys() == {"type", "text"}
    if is_text and system[0]["text"]:
        return {**kept, "system": system[0]["text"]}
    return {**kept, "system": system}


def _as_cut(
    turns: list[tuple[int, Turn]], shape: Mapping[str, object], controls: Controls
) -> Json | None:
    parts = [
        _blocked(part, (k, p), controls) for k, turn in turns for p, part in enumerate(turn.parts)
    ]
    messages = cast("list[tuple[str, int, Json]]", shape["messages"])
    counts = [1 if count < 0 else count for _, count, _ in messages]
    in_system = len(parts) - sum(counts)
    has_system = bool(turns) and shape["system"] is not None and turns[0][1].role == "system"
    if in_system != (len(turns[0][1].parts) if has_system and in_system else 0):
        return None
    system, rest = parts[:in_system], parts[in_system:]
    cut: list[Json] = []
    for (role, count, unknown), number in zip(messages, counts, strict=True):
        blocks, rest = rest[:number], rest[number:]
        content: object = blocks
        if count < 0:
            if blocks[0].keys() != {"type", "text"}:
                return None
            content = blocks[0]["text"]
        cut.append({"role": role, "content": content, **unknown})
    return {"system": system, "messages": cut}


def _with_preamble(system: list[Json], preamble: object) -> list[Json]:
    """What was taken off the front put back: whole blocks, and beginnings of blocks."""
    for k, taken in preamble if isinstance(preamble, list | tuple) else ():
        if isinstance(taken, Mapping):
            system.insert(k, dict(taken))
        elif k < len(system):
            system[k] = {**system[k], "text": f"{taken}{system[k]['text']}"}
        else:
            system.append({"type": "text", "text": taken})
    return system


def _is_said(turn: Turn) -> bool:
    """Whether more of it is left than recordings, which this wire does not carry."""
    return not turn.parts or not all(isinstance(part, Audio) for part in turn.parts)


def _is_system_prompt(turn: Turn) -> bool:
    return turn.role in ("system", "developer") and bool(turn.parts) and not turn.extra


def _message(turn: Turn, k: int, controls: Controls) -> Json:
    role = ROLES.get(turn.role, turn.role)
    parts = turn.parts
    content: object
    if len(parts) == 1 and is_bare(parts[0]) and (k, 0) not in controls:
        assert isinstance(parts[0], Text)
        content = parts[0].text
    else:
        content = _blocks(turn, k, controls)
    return {"role": role, "content": content, **turn.extra}


def _blocks(turn: Turn, k: int, controls: Controls) -> list[Json]:
    parts = enumerate(turn.parts)
    return [_blocked(part, (k, p), controls) for p, part in parts if not isinstance(part, Audio)]


def _blocked(part: Part, place: tuple[int, int], controls: Controls) -> Json:
    block = block_of(part)
    if place in controls and not isinstance(part, Opaque):
        block["cache_control"] = controls[place]
    return block
