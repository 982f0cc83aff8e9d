"""What identifies a conversation so far: digests of its turns, and of what stands before them.

They find what was kept of an earlier turn, and tell which turn a client has changed. They prove
nothing about a prompt's text: reasoning, signatures, ids of calls and unknown fields are left out,
for clients drop or move them (cache markers, say) without changing what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from tokenwire.core.dialogue import (
    Dialogue,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)

__all__ = ("Digests", "digests")

SHORT = 8
"""Bytes of a turn's digest, which is compared only with others of the same conversation."""


class Digests(Struct, frozen=True, array_like=True):
    """Of one dialogue."""

    turns: tuple[bytes, ...]
    """Of each turn by itself, SHORT bytes."""
    ground: Mapping[str, bytes]
    """Of what precedes all turns: "tools", "template_args", "reasoning"."""

    def chain(self, turns: int) -> bytes:
        """Names the dialogue's first `turns` turns. 16 bytes."""
        return sha256(b"".join(self.turns[:turns])).digest()[:16]

    @property
    def anchor(self) -> bytes:
        """Names the conversation by its first turn but system ones, whatever became of the rest."""
        return b"".join(self.turns[1:2] or self.turns[:1])


def digests(dialogue: Dialogue) -> Digests:
    """All of them, in one pass over the text."""
    tools = [(tool.name, tool.description, tool.parameters) for tool in dialogue.tools]
    reasoning = dialogue.reasoning
    ground = {
        "tools": tools,
        "template_args": dialogue.template_args,
        "reasoning": (reasoning.mode, reasoning.effort),
    }
    return Digests(
        turns=tuple(_short((turn.role, *_parts(turn))) for turn in dialogue.turns),
        ground={name: _short(value) for name, value in ground.items()},
    )


def _short(value: object) -> bytes:
    # Why JSON: clients' values may hold integers that msgpack has no room for.
    return sha256(msgspec.json.encode(value)).digest()[:SHORT]


def _parts(turn: Turn) -> Iterator[object]:
    for part in turn.parts:
        if not isinstance(part, Reasoning):
            yield _said(part)


def _said(part: Part) -> object:
    match part:
        case Text(text):
            return text
        case ToolCall():
            return (part.name, part.arguments)
        case ToolResult():
            return [_said(inner) for inner in part.parts]
        case Opaque(kind, value):
            return (kind, value)
        case Reasoning():
            return None
    return (part.url, part.data and sha256(part.data).digest())
