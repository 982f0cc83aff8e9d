"""What templates show of a client's part: its text. Knows no template."""

from __future__ import annotations

from tokenwire.core.dialogue import Audio, ClientPart, Document, Image, Opaque, Text
from tokenwire.core.errors import RequestError

__all__ = ("text_of",)


def text_of(part: ClientPart, turn: int) -> str:
    """ "" for what has none to show. Raises RequestError for media: whoever renders has made text
    of the documents that are text, and refused the rest in better words."""
    match part:
        case Text(text):
            return text
        case Opaque():
            return ""
        case Image() | Audio() | Document():
            kind, where = type(part).__name__.lower(), f"turns[{turn}]"
            raise RequestError(f"{where}: this model takes no {kind} parts", param=where)
