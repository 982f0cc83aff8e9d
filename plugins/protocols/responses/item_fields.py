"""What single fields of items say: texts, references, arguments. Knows no turns and no seals."""

from __future__ import annotations

from typing import Final, cast

import msgspec

from tokenwire.core.errors import RequestError
from tokenwire.plugins.protocols.responses.schema import Json

__all__ = ("is_object", "joined", "parts_of", "plain_reasoning", "reference", "string_of")

_arguments: Final = msgspec.json.Decoder(dict[str, object])


def plain_reasoning(text: str) -> Json:
    """The fields of a reasoning item that has a text and nothing of its own."""
    return {"summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def parts_of(item: Json, field: str) -> list[Json]:
    given = item.get(field)
    return [part for part in given if isinstance(part, dict)] if isinstance(given, list) else []


def joined(item: Json, field: str, at: str) -> str:
    """The texts of a reasoning item's summary or content."""
    given = item.get(field)
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise RequestError(f"{at}.{field} must be a list", param=f"{at}.{field}")
    texts = [part.get("text") for part in given if isinstance(part, dict)]
    if len(texts) != len(given) or not all(isinstance(text, str) for text in texts):
        raise RequestError(
            f"{at}.{field} must be a list of parts with a text", param=f"{at}.{field}"
        )
    return "\n\n".join(cast(list[str], texts))


def reference(item: Json) -> str | None:
    """The id of the item that this one stands for."""
    kind, id_ = item.get("type"), item.get("id")
    is_one = kind == "item_reference" or (kind is None and "role" not in item)
    return id_ if is_one and isinstance(id_, str) and id_ else None


def is_object(text: str) -> bool:
    try:
        _arguments.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def string_of(item: Json, field: str, at: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise RequestError(
            f"{at}.{field} must be a string", param=f"{at}.{field}", code="missing_field"
        )
    return value
