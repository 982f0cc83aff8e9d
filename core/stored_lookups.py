"""What is asked of stored answers and conversations, answered. Knows no wire.

An answer that is being made here is shown as it stands; one that another worker makes, as it stood
half a second ago.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, final

from msgspec.structs import replace

from tokenwire.core.background import Background, BackgroundRun
from tokenwire.core.call import Identity
from tokenwire.core.errors import ErrorKind, RequestError
from tokenwire.core.event_log import events_of
from tokenwire.core.exchange import Exchange
from tokenwire.core.shelf import Shelf, minted, page_of
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
    StoredQuery,
    StoredResult,
    UpdateConversation,
)
from tokenwire.core.wire import HttpReply, Stamp

__all__ = ("StoredLookups",)

POLL_S: Final = 0.2
CANCEL_WITHIN_S: Final = 5.0
KEEPALIVE: Final = b": keep-alive\n\n"
STREAM_HEAD: Final = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)


@final
class StoredLookups:
    """Made once. Raises CallError for what cannot be answered."""

    def __init__(self, shelf: Shelf, background: Background, keepalive_s: float) -> None:
        self._shelf = shelf
        self._background = background
        self._keepalive_s = keepalive_s

    async def answer(self, query: StoredQuery, identity: Identity, stamp: Stamp) -> StoredResult:
        tenant, shelf = identity.tenant, self._shelf
        match query:
            case GetStored(kind, id_):
                if kind == "conversation":
                    return await shelf.conversation(tenant, id_)
                return await self._find(tenant, id_)
            case DeleteStored(kind, id_):
                if kind == "conversation":
                    await shelf.delete_conversation(tenant, id_)
                else:
                    await self._delete(tenant, id_)
                return Deleted(id_)
            case CancelStored(id_):
                return await self._cancel(tenant, id_)
            case ListItems():
                return await self._list(query, tenant)
            case CreateConversation(metadata, items):
                return await self._create(tenant, metadata, items, stamp)
            case UpdateConversation(id_, metadata):
                return await shelf.describe(tenant, id_, metadata)
            case AddItems(id_, items):
                added = minted(items, stamp)
                await shelf.add(tenant, id_, added)
                return Page(added)
            case GetItem(id_, item):
                return await self._item(tenant, id_, item)
            case DeleteItem(id_, item):
                return await shelf.drop_item(tenant, id_, item)

    # --- answers ---------------------------------------------------------------------------------

    async def _find(self, tenant: str, id_: str) -> StoredAnswer:
        run = self._background.find(tenant, id_)
        if run is not None:
            return run.stored()
        return await self._shelf.answer(tenant, id_)

    async def _delete(self, tenant: str, id_: str) -> None:
        answer = await self._find(tenant, id_)
        run = self._background.find(tenant, id_)
        if run is not None:
            run.keeper.is_dropped = True
            await _stop(run)
        elif answer.status not in ("over", "lost"):
            await self._shelf.ask(tenant, id_, "delete")
        await self._shelf.delete(tenant, answer)

    async def _cancel(self, tenant: str, id_: str) -> StoredAnswer:
        answer = await self._find(tenant, id_)
        if not answer.background:
            raise RequestError(
                f"response {id_[:100]!r} was not made in the background: only those can be"
                " cancelled; others end with their connection",
                param="response_id",
            )
        run = self._background.find(tenant, id_)
        if run is not None:
            await _stop(run)
            return run.stored()
        if answer.status in ("over", "lost"):
            return answer
        await self._shelf.ask(tenant, id_, "cancel")
        deadline = time.monotonic() + CANCEL_WITHIN_S
        while answer.status != "over" and time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            answer = await self._find(tenant, id_)
        return answer

    async def follow(
        self,
        query: GetStored,
        identity: Identity,
        exchange: Exchange,
        say: Callable[[GetStored, StoredAnswer], HttpReply],
    ) -> None:
        """An answer's events from number `after` + 1 on, until its last. `say` writes the last one
        of an answer that is lost (`ports.codec.Codec.answer`). Raises CallError before the stream
        has begun, ClientGone."""
        tenant = identity.tenant
        answer = await self._find(tenant, query.id)
        if not answer.background:
            raise RequestError(
                f"response {query.id[:100]!r} was not made in the background: only of those the"
                " events are kept; ask for it without stream",
                param="stream",
            )
        run = self._background.find(tenant, query.id)
        if run is not None:
            await self.follow_run(run, exchange, after=query.after)
            return
        await exchange.start(200, STREAM_HEAD)
        async for data in self._kept(tenant, query, say):
            await exchange.send(data)
        await exchange.finish()

    async def follow_run(
        self,
        run: BackgroundRun,
        exchange: Exchange,
        *,
        after: int = -1,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """The events of an answer that is made here."""
        await exchange.start(200, (*STREAM_HEAD, *headers))
        seen, log = after + 1, run.log
        while True:
            await log.wait(seen, self._keepalive_s)
            if len(log.events) > seen:
                events = log.events[seen:]
                seen += len(events)
                await exchange.send(b"".join(events))
            elif log.is_over:
                break
            else:
                await exchange.send(KEEPALIVE)
        await exchange.finish()

    async def _kept(
        self, tenant: str, query: GetStored, say: Callable[[GetStored, StoredAnswer], HttpReply]
    ) -> AsyncIterator[bytes]:
        """From the store, as another worker puts it there."""
        id_, after = query.id, query.after
        seen = piece = 0
        idle = 0.0
        while True:
            answer = await self._find(tenant, id_)
            for number in range(piece, answer.pieces):
                events = events_of(await self._shelf.piece(tenant, id_, number))
                wanted = events[max(0, after + 1 - seen) :]
                seen += len(events)
                idle = 0.0
                if wanted:
                    yield b"".join(wanted)
            piece = max(piece, answer.pieces)
            if answer.status == "lost":
                yield say(replace(query, after=seen - 1), answer).body
            if answer.status in ("over", "lost"):
                return
            await asyncio.sleep(POLL_S)
            idle += POLL_S
            if idle >= self._keepalive_s:
                idle = 0.0
                yield KEEPALIVE

    # --- items and conversations -----------------------------------------------------------------

    async def _list(self, query: ListItems, tenant: str) -> Page:
        if query.kind == "conversation":
            items = (await self._shelf.conversation(tenant, query.id)).items
        else:
            answer = await self._find(tenant, query.id)
            items = (*answer.context, *answer.input)
        return page_of(items, limit=query.limit, after=query.after, ascending=query.ascending)

    async def _create(
        self, tenant: str, metadata: bytes, items: tuple[StoredItem, ...], stamp: Stamp
    ) -> StoredConversation:
        made = StoredConversation(
            f"conv_{stamp.token(0)}", int(stamp.time), metadata, minted(items, stamp)
        )
        await self._shelf.create(tenant, made)
        return made

    async def _item(self, tenant: str, id_: str, item: str) -> StoredItem:
        for kept in (await self._shelf.conversation(tenant, id_)).items:
            if kept.id == item:
                return kept
        raise RequestError(
            f"conversation {id_[:100]!r} has no item {item[:100]!r}", kind=ErrorKind.NOT_FOUND
        )


async def _stop(run: BackgroundRun) -> None:
    """Tell the engine now, and wait until what there is has been stored."""
    run.exchange.close()
    if run.task is not None:
        await asyncio.wait([run.task], timeout=CANCEL_WITHIN_S)
