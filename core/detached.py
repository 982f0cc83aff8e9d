"""Calls answered in the background: begun, and shown to whoever asked. Knows no wire."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, final

from msgspec.structs import replace

from tokenwire.core.background import Background
from tokenwire.core.errors import PluginError
from tokenwire.core.exchange import Exchange
from tokenwire.core.keeper import Keeper
from tokenwire.core.ports.codec import KeptReply, Reply
from tokenwire.core.shelf import Shelf
from tokenwire.core.stored import GetStored
from tokenwire.core.stored_lookups import StoredLookups
from tokenwire.core.work import Work

__all__ = ("Detached",)


class Make(Protocol):
    """Makes the answer to `work` through `reply`."""

    def __call__(self, work: Work, reply: Reply) -> Awaitable[None]: ...


@final
class Detached:
    """Made once, with all that is asked of what is stored."""

    def __init__(self, shelf: Shelf, most: int, keepalive_s: float) -> None:
        self.background = Background(shelf, most)
        self.lookups = StoredLookups(shelf, self.background, keepalive_s)
        self._shelf = shelf

    async def start(self, work: Work, make: Make) -> None:
        """Begin the answer, which then needs nobody, and show it as it stands, or its events as
        they come. Raises CallError while nothing has begun, ClientGone."""
        asked, codec = work.call, work.codec
        call = replace(asked, output=replace(asked.output, stream=True))
        reply = codec.reply(call, work.stamp)
        if not isinstance(reply, KeptReply):
            raise PluginError(f"codec {codec.name!r}: a call with `keeping` needs a KeptReply")

        def begun(exchange: Exchange) -> Awaitable[None]:
            return make(replace(work, call=call, exchange=exchange), reply)

        keeper = Keeper(self._shelf, reply, call)
        run, answer = await self.background.start(keeper, begun)
        headers = work.headers(is_cached=False)
        if asked.output.stream:
            await self.lookups.follow_run(run, work.exchange, headers=headers)
            return
        shown = codec.answer(GetStored("response", reply.id), answer)
        await work.exchange.reply(replace(shown, headers={**shown.headers, **dict(headers)}))
