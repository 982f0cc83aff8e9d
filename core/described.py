"""Pictures, recordings and files that a model cannot take, as one line of words each. Pure.

So that an agent whose history holds a picture can go on: the model is told that there was one.
Knows no protocol and no configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.dialogue import Audio, ClientPart, Document, Image, Part, Text, ToolResult

__all__ = ("MEDIA_PATHS", "described")

MEDIA_PATHS: Final[Mapping[str, str]] = {
    kind: f"messages[].content[].{kind}" for kind in ("image", "audio", "document")
}
"""What is listed as ignored, by kind, unless a protocol's `words` call it otherwise."""
LONGEST: Final = 200
"""Characters of a name, a type or an address: they are the client's."""

P = TypeVar("P", Part, ClientPart)


def described(call: Call, takes: Set[str], words: Mapping[str, str]) -> Call:
    """The call with words in place of media of other kinds than `takes`; each part stays where it
    was. `words`: the protocol's names of MEDIA_PATHS."""
    found: dict[str, None] = {}
    turns = tuple(
        replace(turn, parts=_parts(turn.parts, takes, found)) for turn in call.dialogue.turns
    )
    if not found:
        return call
    paths = (words.get(path, path) for path in map(MEDIA_PATHS.__getitem__, found))
    return replace(
        call,
        dialogue=replace(call.dialogue, turns=turns),
        ignored=tuple(dict.fromkeys((*call.ignored, *paths))),
    )


def _parts(parts: tuple[P, ...], takes: Set[str], found: dict[str, None]) -> tuple[P, ...]:
    shown: list[Any] = [_part(part, takes, found) for part in parts]
    return tuple(shown)


def _part(part: Part, takes: Set[str], found: dict[str, None]) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=_parts(part.parts, takes, found))
    if not isinstance(part, Image | Audio | Document):
        return part
    kind = type(part).__name__.lower()
    if kind in takes or (isinstance(part, Document) and part.text is not None):
        return part
    found[kind] = None
    size = None if part.data is None else f"{len(part.data)} bytes"
    name = part.name or (part.title if isinstance(part, Document) else None)
    facts = [text[:LONGEST] for text in (name, part.media_type, part.url, size) if text]
    return Text(f"[{kind}: {', '.join((*facts, 'not shown: this model takes none'))}]")
