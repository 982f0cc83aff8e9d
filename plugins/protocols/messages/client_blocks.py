"""Parts to content blocks: blocks.py turned round, unknown fields included. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, cast

import msgspec
from msgspec import Raw

from tokenwire.core.dialogue import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from tokenwire.plugins.protocols.messages.blocks import SEARCH_RESULT, TOOL_REFERENCE

__all__ = ("block_of", "is_bare")

Json = dict[str, object]

_untyped: Final = msgspec.json.Decoder()


def is_bare(part: Part) -> bool:
    return isinstance(part, Text) and not part.extra


def block_of(part: Part) -> Json:
    match part:
        case Text() if isinstance(part.extra.get(TOOL_REFERENCE), Mapping):
            return dict(cast(Mapping[str, object], part.extra[TOOL_REFERENCE]))
        case Text(text):
            return {"type": "text", "text": text, **part.extra}
        case Image():
            return {"type": "image", "source": _source(part), **part.extra}
        case Document() if isinstance(part.extra.get(SEARCH_RESULT), Mapping):
            return dict(cast(Mapping[str, object], part.extra[SEARCH_RESULT]))
        case Document():
            source = _source(part)
            title = part.name if part.title is None else part.title
            titled = {"title": title} if title is not None else {}
            return {"type": "document", "source": source, **titled, **part.extra}
        case Reasoning() if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted, **part.extra}
        case Reasoning(text, signature):
            signed = {"signature": signature} if signature is not None else {}
            return {"type": "thinking", "thinking": text, **signed, **part.extra}
        case ToolCall(call_id, name):
            given = _input(part.arguments)
            return {"type": "tool_use", "id": call_id, "name": name, "input": given, **part.extra}
        case ToolResult(call_id, parts):
            failed = {"is_error": True} if part.is_error else {}
            parts = tuple(inner for inner in parts if not isinstance(inner, Audio))
            content: object = [block_of(inner) for inner in parts]
            if len(parts) == 1 and is_bare(parts[0]):
                assert isinstance(parts[0], Text)
                content = parts[0].text
            head = {"type": "tool_result", "tool_use_id": call_id, "content": content}
            return {**head, **failed, **part.extra}
        case Opaque(_, value):
            return dict(value)
        case Audio():
            raise ValueError("Messages carries no audio")


def _source(part: Image | Document) -> Json:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    media = {"media_type": part.media_type} if part.media_type is not None else {}
    if isinstance(part, Document) and part.text is not None:
        return {"type": "text", "data": part.text, **media}
    return {"type": "base64", "data": b64encode(part.data or b"").decode(), **media}


def _input(arguments: str) -> object:
    """As it stands where it is an object; else as a string, which is how a server takes it."""
    try:
        is_object = isinstance(_untyped.decode(arguments), dict)
    except msgspec.MsgspecError:
        is_object = False
    return Raw(arguments.encode()) if is_object else arguments
