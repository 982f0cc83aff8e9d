"""Answers and conversations in the store, under the tenant that asked for them. Knows no wire.

Everything stands under (tenant, id), so that no tenant finds another's. A conversation that two
calls add to at once keeps the items of both. What cannot be read any more counts as not there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, final
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from tokenwire.core.errors import ErrorKind, RequestError, ServiceError, StoreError
from tokenwire.core.ports.store import CompareAndSet, Store
from tokenwire.core.stored import Page, StoredAnswer, StoredConversation, StoredItem, StoredKind
from tokenwire.core.wire import Stamp

__all__ = ("Shelf", "minted", "page_of")

log = logging.getLogger("tokenwire.shelf")

ANSWERS: Final = "stored.answers"
CONVERSATIONS: Final = "stored.conversations"
PIECES: Final = "stored.pieces"
WISHES: Final = "stored.wishes"
WISH_TTL_S: Final = 3600.0
ATTEMPTS: Final = 64
"""Each fails only where another process has changed the conversation meanwhile."""
MOST_ITEMS: Final = 10_000
LOST_AFTER_S: Final = 15.0
"""Of an answer that nobody writes any more; a beat is half a second."""

Wish: TypeAlias = Literal["cancel", "delete"]
Change: TypeAlias = Callable[[StoredConversation], StoredConversation]

_pack: Final = msgspec.msgpack.Encoder().encode
_answer: Final = msgspec.msgpack.Decoder(StoredAnswer).decode
_conversation: Final = msgspec.msgpack.Decoder(StoredConversation).decode


@final
class Shelf:
    """One a process. Raises ServiceError (503) where the store fails."""

    def __init__(self, store: Store, ttl_s: float) -> None:
        """`ttl_s`: how long an answer is kept, and a conversation that nothing is added to."""
        self._store = store
        self._ttl_s = ttl_s
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # --- answers ---------------------------------------------------------------------------------

    async def put(self, tenant: str, answer: StoredAnswer) -> None:
        await self._set(ANSWERS, tenant, answer.id, _pack(answer))

    async def answer(self, tenant: str, id: str, *, param: str | None = None) -> StoredAnswer:
        """Raises RequestError (404; 400 that names `param` where a request refers to it)."""
        data = await self._get(ANSWERS, tenant, id)
        if data is not None:
            try:
                return _seen(_answer(data))
            except msgspec.MsgspecError:
                log.warning("a stored answer cannot be read; was it made by another version?")
        raise _missing("response", id, param)

    async def delete(self, tenant: str, answer: StoredAnswer) -> None:
        await self._delete(ANSWERS, tenant, answer.id)
        for number in range(answer.pieces):
            await self._delete(PIECES, tenant, f"{answer.id} {number}")

    async def put_piece(self, tenant: str, id: str, number: int, data: bytes) -> None:
        """A piece of an answer's stream."""
        await self._set(PIECES, tenant, f"{id} {number}", data)

    async def piece(self, tenant: str, id: str, number: int) -> bytes:
        """b"" for one that is gone."""
        return await self._get(PIECES, tenant, f"{id} {number}") or b""

    async def ask(self, tenant: str, id: str, wish: Wish) -> None:
        """Of the worker that makes it, whichever that is."""
        await self._set(WISHES, tenant, id, wish.encode(), ttl_s=WISH_TTL_S)

    async def wish(self, tenant: str, id: str) -> Wish | None:
        data = await self._get(WISHES, tenant, id)
        if data is None:
            return None
        return "delete" if data == b"delete" else "cancel"

    # --- conversations ---------------------------------------------------------------------------

    async def conversation(
        self, tenant: str, id: str, *, param: str | None = None
    ) -> StoredConversation:
        """Raises RequestError as `answer` does."""
        return (await self._load(tenant, id, param))[1]

    async def create(self, tenant: str, conversation: StoredConversation) -> None:
        await self._set(CONVERSATIONS, tenant, conversation.id, _pack(conversation))

    async def add(
        self, tenant: str, id: str, items: Sequence[StoredItem], *, param: str | None = None
    ) -> StoredConversation:
        """At its end. Items whose ids it has are taken as the same, and not added again."""

        def added(old: StoredConversation) -> StoredConversation:
            known = {item.id for item in old.items}
            new = tuple(item for item in items if item.id not in known)
            if len(old.items) + len(new) > MOST_ITEMS:
                raise RequestError(
                    f"a conversation holds {MOST_ITEMS} items at most: begin another", param="items"
                )
            return replace(old, items=(*old.items, *new))

        return await self._change(tenant, id, added, param)

    async def describe(self, tenant: str, id: str, metadata: bytes) -> StoredConversation:
        return await self._change(tenant, id, lambda old: replace(old, metadata=metadata), None)

    async def drop_item(self, tenant: str, id: str, item: str) -> StoredConversation:
        """Raises RequestError (404) where it has no such item."""

        def dropped(old: StoredConversation) -> StoredConversation:
            rest = tuple(kept for kept in old.items if kept.id != item)
            if len(rest) == len(old.items):
                raise _missing("item", item, None)
            return replace(old, items=rest)

        return await self._change(tenant, id, dropped, None)

    async def delete_conversation(self, tenant: str, id: str) -> None:
        if not await self._delete(CONVERSATIONS, tenant, id):
            raise _missing("conversation", id, None)

    async def _load(
        self, tenant: str, id: str, param: str | None
    ) -> tuple[bytes, StoredConversation]:
        data = await self._get(CONVERSATIONS, tenant, id)
        if data is None:
            raise _missing("conversation", id, param)
        try:
            return data, _conversation(data)
        except msgspec.MsgspecError:
            raise _missing("conversation", id, param) from None

    async def _change(
        self, tenant: str, id: str, change: Change, param: str | None
    ) -> StoredConversation:
        key = _key(tenant, id)
        # Why one at a time: with many at once, the unlucky would run out of attempts.
        async with self._changing.setdefault(key, asyncio.Lock()):
            for _ in range(ATTEMPTS):
                data, old = await self._load(tenant, id, param)
                new = change(old)
                swap = CompareAndSet(data, _pack(new), ttl_s=self._ttl_s)
                try:
                    done = await self._store.apply(swap, CONVERSATIONS, key)
                except StoreError as error:
                    raise _unreachable(error) from error
                if done:
                    return new
        raise ServiceError(
            ErrorKind.OVERLOADED, "too many calls change this conversation at once; try again"
        )

    # --- the store -------------------------------------------------------------------------------

    async def _set(
        self, namespace: str, tenant: str, id: str, data: bytes, *, ttl_s: float | None = None
    ) -> None:
        try:
            await self._store.set(namespace, _key(tenant, id), data, ttl_s=ttl_s or self._ttl_s)
        except StoreError as error:
            raise _unreachable(error) from error

    async def _get(self, namespace: str, tenant: str, id: str) -> bytes | None:
        try:
            return await self._store.get(namespace, _key(tenant, id))
        except StoreError as error:
            raise _unreachable(error) from error

    async def _delete(self, namespace: str, tenant: str, id: str) -> bool:
        try:
            return await self._store.delete(namespace, _key(tenant, id))
        except StoreError as error:
            raise _unreachable(error) from error


def _seen(answer: StoredAnswer) -> StoredAnswer:
    """As it stands now: lost, where its worker has not been heard of."""
    if answer.status != "over" and time.time() - answer.beat > LOST_AFTER_S:
        return replace(answer, status="lost")
    return answer


def _key(tenant: str, id: str) -> str:
    """Why with the length: neither name is ours, and no pair may spell another."""
    return f"{len(tenant)} {tenant} {id}"


def _missing(what: StoredKind | str, id: str, param: str | None) -> RequestError:
    return RequestError(
        f"there is no {what} {id[:100]!r} here, or no more",
        kind=ErrorKind.NOT_FOUND if param is None else ErrorKind.INVALID_REQUEST,
        param=param,
        code=None if param is None else f"{param}_not_found",
    )


def _unreachable(error: StoreError) -> ServiceError:
    log.warning("the store failed: %s", error)
    return ServiceError(
        ErrorKind.UNAVAILABLE,
        "the store of responses cannot be reached; try again",
        retry_after=1.0,
    )


def minted(items: Sequence[StoredItem], stamp: Stamp) -> tuple[StoredItem, ...]:
    """Every item with an id of its own."""
    return tuple(
        StoredItem(f"{item.id}{stamp.token(0)}i{k:04}", item.data) if item.id[-1:] == "_" else item
        for k, item in enumerate(items)
    )


def page_of(items: Sequence[StoredItem], *, limit: int, after: str | None, ascending: bool) -> Page:
    """Raises RequestError where there is no item `after`."""
    ordered = list(items) if ascending else list(reversed(items))
    start = 0
    if after is not None:
        places = [k for k, item in enumerate(ordered) if item.id == after]
        if not places:
            raise RequestError(f"after: the list has no item {after[:100]!r}", param="after")
        start = places[0] + 1
    found = ordered[start : start + limit]
    return Page(tuple(found), has_more=start + limit < len(ordered))
