"""A request's input as it is kept: one item each, with an id, messages in their long form. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from tokenwire.core.stored import StoredItem
from tokenwire.core.wire import Stamp
from tokenwire.plugins.protocols.responses.call import ResponsesCall, read_input
from tokenwire.plugins.protocols.responses.ids import PREFIXES, input_id
from tokenwire.plugins.protocols.responses.schema import Json

__all__ = ("kept_input", "long_form", "stored_item")

_json: Final = msgspec.json.Encoder().encode


def kept_input(call: ResponsesCall, stamp: Stamp) -> tuple[StoredItem, ...]:
    """Ids that the client gave stay."""
    items = []
    for k, given in enumerate(read_input(call.input)):
        item = long_form(given)
        id_ = item.get("id")
        if not isinstance(id_, str) or not id_:
            id_ = item["id"] = input_id(stamp, item.get("type"), k)
        items.append(StoredItem(id_, _json(item)))
    return tuple(items)


def stored_item(given: Json) -> StoredItem:
    """An item that a client adds to a conversation; its id is minted where it has none."""
    item = long_form(given)
    id_ = item.pop("id", None)
    if not isinstance(id_, str) or not id_:
        kind = item.get("type")
        id_ = f"{PREFIXES.get(kind, 'item') if isinstance(kind, str) else 'item'}_"
    return StoredItem(id_, _json(item))


def long_form(given: Json) -> Json:
    """Messages with a type, a status and a list of parts, as the lists of items show them."""
    item = dict(given)
    if item.get("type") is None and "role" in item:
        item["type"] = "message"
    if item.get("type") != "message":
        return item
    content = item.get("content")
    if isinstance(content, str) or content is None:
        part: Json = {"type": "input_text", "text": content or ""}
        if item.get("role") == "assistant":
            part = {"type": "output_text", "text": content or "", "annotations": []}
        item["content"] = [part]
    item.setdefault("status", "completed")
    return item
