"""What is asked of stored responses and conversations, and how it is answered. Knows no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw, Struct

from tokenwire.core.errors import RequestError
from tokenwire.core.ignored import Ignored
from tokenwire.core.json_body import read_object, to_struct
from tokenwire.core.stored import (
    AddItems,
    CancelStored,
    CreateConversation,
    Deleted,
    DeleteItem,
    DeleteStored,
    GetItem,
    GetStored,
    ListItems,
    Page,
    StoredAnswer,
    StoredConversation,
    StoredItem,
    StoredKind,
    StoredQuery,
    StoredResult,
    UpdateConversation,
)
from tokenwire.core.wire import HttpReply, HttpRequest, escape_breaks
from tokenwire.plugins.protocols.responses.item_fields import reference
from tokenwire.plugins.protocols.responses.items import ItemReader
from tokenwire.plugins.protocols.responses.kept_input import stored_item
from tokenwire.plugins.protocols.responses.metadata import check_metadata
from tokenwire.plugins.protocols.responses.schema import Json

__all__ = ("ConversationBody", "ItemsBody", "MetadataBody", "answer_stored", "decode_stored")

T = TypeVar("T", bound=Struct)

MOST: Final = 20
"""Items that one request may add to a conversation."""
LOST: Final = {"code": "server_error", "message": "the server that made this response is gone"}

_json: Final = msgspec.json.Encoder().encode
_object: Final = msgspec.json.Decoder(dict[str, Raw])


class ConversationBody(Struct, frozen=True):
    """POST /v1/conversations"""

    items: list[Json] | None = None
    metadata: Json | None = None


class MetadataBody(Struct, frozen=True):
    """POST /v1/conversations/{id}"""

    metadata: Json | None = None


class ItemsBody(Struct, frozen=True):
    """POST /v1/conversations/{id}/items"""

    items: list[Json]


def decode_stored(request: HttpRequest) -> StoredQuery:
    """Every request but POST /v1/responses and its sisters. Raises RequestError."""
    kind: StoredKind = "conversation" if "/conversations" in request.path else "response"
    params = request.path_params
    id_ = params.get(f"{kind}_id", "")
    last = request.path.rstrip("/").rpartition("/")[2]
    if "item_id" in params:
        item = params["item_id"]
        return GetItem(id_, item) if request.method == "GET" else DeleteItem(id_, item)
    match request.method, last:
        case "GET", "items" | "input_items":
            return _list(kind, id_, _query(request))
        case "POST", "items":
            body = _known(read_object(request.body), ItemsBody)
            return AddItems(id_, _items(body.items))
        case "POST", "cancel":
            return CancelStored(id_)
        case "POST", "conversations":
            # Why: a conversation may be made of nothing, with no body at all.
            value = read_object(request.body) if request.body.strip() else {}
            made = _known(value, ConversationBody)
            return CreateConversation(_metadata(made.metadata), _items(made.items or []))
        case "POST", _:
            changed = _known(read_object(request.body), MetadataBody)
            return UpdateConversation(id_, _metadata(changed.metadata))
        case "DELETE", _:
            return DeleteStored(kind, id_)
    return _get(kind, id_, _query(request))


def _known(given: Json, kind: type[T]) -> T:
    """The body as `kind`. Why strict: its answer has no place to list what nothing used."""
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            raise RequestError(
                f"{name[:64]!r} is no field of this route; there is {', '.join(known)}",
                param=name[:64],
                code="unknown_field",
            )
    return to_struct(given, kind)


def _query(request: HttpRequest) -> dict[str, str]:
    """The last value of each parameter."""
    given = parse_qs(request.query, keep_blank_values=True, errors="replace")
    return {name: values[-1] for name, values in given.items()}


def _get(kind: StoredKind, id_: str, query: Mapping[str, str]) -> GetStored:
    stream = query.get("stream", "false").lower() in ("true", "1")
    after = -1
    if (given := query.get("starting_after")) is not None:
        after = _number(given, "starting_after", 0, 2**31 - 1)
        if not stream:
            raise RequestError("starting_after needs stream=true", param="starting_after")
    return GetStored(kind, id_, stream=stream, after=after)


def _list(kind: StoredKind, id_: str, query: Mapping[str, str]) -> ListItems:
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise RequestError(f"order must be asc or desc, not {order[:64]!r}", param="order")
    limit = _number(query.get("limit", "20"), "limit", 1, 100)
    after = query.get("after") or None
    return ListItems(kind, id_, limit=limit, after=after, ascending=order == "asc")


def _number(text: str, name: str, least: int, most: int) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 10 and least <= int(text) <= most:
        return int(text)
    raise RequestError(
        f"{name} must be a whole number from {least} to {most}, not {text[:64]!r}", param=name
    )


def _items(given: Sequence[Json]) -> tuple[StoredItem, ...]:
    if len(given) > MOST:
        raise RequestError(
            f"items may be {MOST} at a time, not {len(given)}", param="items", code="too_many_items"
        )
    reader = ItemReader(Ignored())
    for k, item in enumerate(given):
        if reference(item) is not None:
            raise RequestError(
                f"items[{k}] refers to an item: a conversation keeps items themselves, so send it",
                param=f"items[{k}]",
                code="unsupported_item",
            )
        # Why: what cannot be read would spoil every later use of the conversation.
        reader.read(item, f"items[{k}]")
    return tuple(stored_item(item) for item in given)


def _metadata(given: Json | None) -> bytes:
    check_metadata(given)
    return _json(given or {})


def answer_stored(query: StoredQuery, result: StoredResult) -> HttpReply:
    match result:
        case StoredAnswer():
            body = _lost(result.body) if result.status == "lost" else result.body
            if isinstance(query, GetStored) and query.stream:
                event = {"type": "response.failed", "response": Raw(body)}
                data = _json({**event, "sequence_number": query.after + 1})
                written = b"event: response.failed\ndata: %b\n\n" % escape_breaks(data)
                return HttpReply(200, "text/event-stream", written)
        case StoredConversation():
            body = _conversation(result)
        case StoredItem():
            body = _item(result)
        case Page(items, has_more):
            listed = [Raw(_item(item)) for item in items]
            ends = {
                "first_id": items[0].id if items else "",
                "last_id": items[-1].id if items else "",
            }
            body = _json({"object": "list", "data": listed, "has_more": has_more, **ends})
        case Deleted(id_):
            is_response = isinstance(query, DeleteStored) and query.kind == "response"
            kind = "response" if is_response else "conversation.deleted"
            body = _json({"id": id_, "object": kind, "deleted": True})
    return HttpReply(200, "application/json", escape_breaks(body))


def _item(item: StoredItem) -> bytes:
    fields = _object.decode(item.data)
    return _json({"id": item.id, **{key: raw for key, raw in fields.items() if key != "id"}})


def _conversation(found: StoredConversation) -> bytes:
    return _json(
        {
            "id": found.id,
            "object": "conversation",
            "created_at": found.created,
            "metadata": Raw(found.metadata),
        }
    )


def _lost(body: bytes) -> bytes:
    """A response whose worker went away: it will never end by itself."""
    return _json({**_object.decode(body), "status": "failed", "error": LOST})
