"""One answer's way into the store, when it is whole; and into its conversation. Knows no wire."""

from __future__ import annotations

import logging
import time
from typing import final

from msgspec.structs import replace

from tokenwire.core.call import Call
from tokenwire.core.errors import CallError
from tokenwire.core.ports.codec import KeptReply
from tokenwire.core.shelf import Shelf
from tokenwire.core.stored import AnswerStatus, StoredAnswer

__all__ = ("Keeper",)

log = logging.getLogger("tokenwire.keeper")


@final
class Keeper:
    """One a call that has `keeping`. A store that fails costs the copy, not the answer."""

    def __init__(self, shelf: Shelf, reply: KeptReply, call: Call) -> None:
        assert call.keeping is not None
        self.reply = reply
        self.tenant = call.identity.tenant
        self.is_dropped = False
        """The client has deleted it: nothing of it is kept."""
        self._shelf = shelf
        self._keeping = call.keeping

    def stored(self, *, pieces: int = 0, status: AnswerStatus | None = None) -> StoredAnswer:
        answer = self.reply.stored()
        return replace(answer, beat=time.time(), pieces=pieces, status=status or answer.status)

    async def put(self, answer: StoredAnswer) -> None:
        """Raises ServiceError where the store fails."""
        if self._keeping.store and not self.is_dropped:
            await self._shelf.put(self.tenant, answer)

    async def settle(self, *, is_good: bool) -> None:
        """The answer is whole, and its last bytes are about to go out: who has read them may ask
        for it. `is_good`: it did not fail, so that a conversation may go on from it."""
        answer = self.stored()
        try:
            if not self._keeping.background:
                await self.put(answer)
            if is_good and (talk := self._keeping.conversation) is not None:
                await self._shelf.add(self.tenant, talk, (*answer.input, *answer.output))
        except CallError as error:
            log.warning("response %s is not kept: %s", answer.id, error)
