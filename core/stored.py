"""What is kept of answers and conversations, and what may be asked of them. No store, no wire.

Items are JSON of the protocol that stored them; here they only have ids and an order.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = (
    "AddItems",
    "AnswerStatus",
    "CancelStored",
    "CreateConversation",
    "DeleteItem",
    "DeleteStored",
    "Deleted",
    "GetItem",
    "GetStored",
    "ListItems",
    "Page",
    "StoredAnswer",
    "StoredConversation",
    "StoredItem",
    "StoredKind",
    "StoredQuery",
    "StoredResult",
    "UpdateConversation",
)

StoredKind: TypeAlias = Literal["response", "conversation"]
AnswerStatus: TypeAlias = Literal["queued", "running", "over", "lost"]


class StoredItem(Struct, frozen=True, array_like=True):
    """`data` is a JSON object. An id that ends in "_" is minted by whoever stores the item."""

    id: str
    data: bytes


class StoredAnswer(Struct, frozen=True):
    """An answer as far as it is made. `body` is its JSON as the protocol sends it whole."""

    id: str
    body: bytes
    status: AnswerStatus
    input: tuple[StoredItem, ...]
    """What this request brought."""
    output: tuple[StoredItem, ...] = ()
    context: tuple[StoredItem, ...] = ()
    """What came before the input, oldest first: it stays, whatever becomes of earlier answers."""
    background: bool = False
    pieces: int = 0
    """Of a background answer: how many pieces its stream has in the store."""
    beat: float = 0.0
    """When it was last written, Unix seconds: a running one that is not written has lost its
    worker."""


class StoredConversation(Struct, frozen=True):
    """`metadata` is JSON."""

    id: str
    created: int
    metadata: bytes
    items: tuple[StoredItem, ...] = ()


class Page(Struct, frozen=True):
    """Some of a list, in the order asked for."""

    items: tuple[StoredItem, ...]
    has_more: bool = False


class Deleted(Struct, frozen=True):
    """It is gone."""

    id: str


class GetStored(Struct, frozen=True, tag="get_stored"):
    """`stream`: an answer's events, from number `after` + 1 on, and those still to come. A codec
    answers it itself for an answer that is lost alone: by its last event, of number `after` + 1."""

    kind: StoredKind
    id: str
    stream: bool = False
    after: int = -1


class DeleteStored(Struct, frozen=True, tag="delete_stored"):
    kind: StoredKind
    id: str


class CancelStored(Struct, frozen=True, tag="cancel_stored"):
    """End an answer that is made in the background."""

    id: str


class ListItems(Struct, frozen=True, tag="list_items"):
    """Of an answer its input, of a conversation all. `after` is an item's id."""

    kind: StoredKind
    id: str
    limit: int = 20
    after: str | None = None
    ascending: bool = False


class CreateConversation(Struct, frozen=True, tag="create_conversation"):
    metadata: bytes
    items: tuple[StoredItem, ...] = ()


class UpdateConversation(Struct, frozen=True, tag="update_conversation"):
    id: str
    metadata: bytes


class AddItems(Struct, frozen=True, tag="add_items"):
    """To a conversation -> a page of what was added."""

    id: str
    items: tuple[StoredItem, ...]


class GetItem(Struct, frozen=True, tag="get_item"):
    """Of a conversation."""

    id: str
    item: str


class DeleteItem(Struct, frozen=True, tag="delete_item"):
    """Of a conversation -> what is left of it."""

    id: str
    item: str


StoredQuery: TypeAlias = (
    GetStored
    | DeleteStored
    | CancelStored
    | ListItems
    | CreateConversation
    | UpdateConversation
    | AddItems
    | GetItem
    | DeleteItem
)
StoredResult: TypeAlias = StoredAnswer | StoredConversation | StoredItem | Page | Deleted
