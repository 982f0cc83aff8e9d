"""A call whose pictures and documents were given by URL, and what to do once they are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from tokenwire.core.call import Call, Need
from tokenwire.core.dialogue import ClientPart, Document, Image, Part, ToolResult

__all__ = ("MessagesCall",)


class MessagesCall(Call, frozen=True):
    """Made only where there are needs; without them a plain Call is enough."""

    def resolve(self, found: Mapping[Need, object]) -> Call:
        """`found` has bytes for every URL; raises LookupError for one that is not there."""
        resolved = super().resolve(found)
        turns = tuple(
            replace(turn, parts=tuple(_filled(part, found) for part in turn.parts))
            for turn in self.dialogue.turns
        )
        return replace(resolved, dialogue=replace(self.dialogue, turns=turns))


def _filled(part: Part, found: Mapping[Need, object]) -> Part:
    match part:
        case Image() | Document() if part.url is not None:
            data = found[Need("url", part.url)]
            if not isinstance(data, bytes):
                raise LookupError(f"wanted bytes for {part.url}, got {type(data).__name__}")
            return replace(part, url=None, data=data)
        case ToolResult():
            parts = tuple(cast(ClientPart, _filled(inner, found)) for inner in part.parts)
            return replace(part, parts=parts)
        case _:
            return part
