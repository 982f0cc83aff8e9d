"""A call for which something must be brought first: media by URL, thinking that is sealed;
or whose own thinking is to be sent sealed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from msgspec.structs import replace

from tokenwire.core.call import Call, Need
from tokenwire.core.dialogue import ClientPart, Document, Image, Part, Reasoning, ToolResult

__all__ = ("MessagesCall", "Shown")

Shown: TypeAlias = Literal["whole", "omitted", "redacted"]
"""How thinking is sent: as it is; with its text sealed in the signature; as a sealed block."""


class MessagesCall(Call, frozen=True):
    """Made only where there is such a need or wish; else a plain Call is enough."""

    thinking: Shown = "whole"

    def resolve(self, found: Mapping[Need, object]) -> Call:
        """`found` has bytes for URLs and for what our keys sealed; None for what others sealed,
        which the model is not given. Raises LookupError for a need that is not there."""
        resolved = super().resolve(found)
        turns = tuple(
            replace(turn, parts=tuple(_filled(part, found) for part in turn.parts))
            for turn in self.dialogue.turns
        )
        foreign = any(value is None for need, value in found.items() if need.kind == "sealed")
        ignored = (*self.ignored, FOREIGN) if foreign else self.ignored
        dialogue = replace(self.dialogue, turns=turns)
        return replace(resolved, dialogue=dialogue, ignored=ignored)


FOREIGN = "messages[].content[][type=redacted_thinking]"


def _filled(part: Part, found: Mapping[Need, object]) -> Part:
    match part:
        case Image() | Document() if part.url is not None:
            data = found.get(Need("url", part.url))
            if data is None:
                return part
            if not isinstance(data, bytes):
                raise LookupError(f"wanted bytes for {part.url}, got {type(data).__name__}")
            return replace(part, url=None, data=data)
        case Reasoning(text="", signature=signature, redacted=redacted):
            data = found.get(Need("sealed", redacted or signature or ""))
            if not isinstance(data, bytes):
                return part
            return replace(part, text=data.decode("utf-8", "replace"), redacted=None)
        case ToolResult():
            parts = tuple(cast(ClientPart, _filled(inner, found)) for inner in part.parts)
            return replace(part, parts=parts)
        case _:
            return part
