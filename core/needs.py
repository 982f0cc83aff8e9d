"""What a call needs from outside before it can run: earlier answers and conversations from the
store, sealed thinking opened, media fetched by URL.

Knows no protocol: a call says what it needs (`Call.needs`) and takes what was found
(`Call.resolve`).
"""

from __future__ import annotations

from typing import Final, final

from msgspec.structs import replace

from tokenwire.core.call import Call, Need
from tokenwire.core.errors import RequestError
from tokenwire.core.media_fetch import MediaFetcher
from tokenwire.core.sealing import REASONING, bound_to, unseal
from tokenwire.core.served import ServedModel
from tokenwire.core.shelf import Shelf
from tokenwire.core.signing import Keyring

__all__ = ("Needs",)

STORED: Final = ("response", "conversation")
ROUNDS: Final = 3
"""An earlier answer may hold what was sealed, or stand for another; not without end."""
SEALED: Final = "sealed"
URL: Final = "url"


@final
class Needs:
    """Made once a server."""

    def __init__(self, keys: Keyring, fetcher: MediaFetcher, shelf: Shelf | None = None) -> None:
        """`shelf` None: nothing is stored."""
        self._keys = keys
        self._fetcher = fetcher
        self._shelf = shelf

    async def meet(self, call: Call, model: ServedModel) -> Call:
        """The call with its needs of these kinds met. Raises RequestError for media that cannot be
        fetched; nothing is fetched for a model that takes none, whose template refuses it."""
        for _ in range(ROUNDS):
            stored = [need for need in call.needs if need.kind in STORED]
            if not stored:
                break
            call = call.resolve({need: await self._stored(need, call) for need in stored})
        wanted = [need for need in call.needs if need.kind in (SEALED, URL)]
        if not wanted:
            return call
        found: dict[Need, object] = {
            need: self._open(need.ref, call, model) for need in wanted if need.kind == SEALED
        }
        if model.takes_media:
            urls = [need.ref for need in wanted if need.kind == URL]
            fetched = await self._fetcher.fetch(urls)
            found.update({Need(URL, url): data for url, data in fetched.items()})
        left = tuple(need for need in call.needs if need not in wanted)
        met = replace(call, needs=tuple(found)).resolve(found)
        return replace(met, needs=left)

    async def _stored(self, need: Need, call: Call) -> object:
        """None for what is not there."""
        if self._shelf is None:
            return None
        tenant = call.identity.tenant
        try:
            if need.kind == "conversation":
                return await self._shelf.conversation(tenant, need.ref)
            return await self._shelf.answer(tenant, need.ref)
        except RequestError:
            return None

    def _open(self, sealed: str, call: Call, model: ServedModel) -> bytes | None:
        aad = bound_to(model.renderer.fingerprint, call.identity.tenant)
        return unseal(self._keys, REASONING, sealed, aad)
