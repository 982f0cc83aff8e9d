"""The exact ids of conversations so far: what the engine was given, and what it answered.

Kept in memory and, for other processes, in the store, under (fingerprint, tenant, salt). A slow or
lost store never fails a request: what is not found is rendered and encoded from the start. Pure of
text: what may be spliced where is splice.py's to say.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import final
from zlib import crc32

import msgspec
from msgspec import Struct

from tokenwire.core.conversation import Digests
from tokenwire.core.dialogue import Dialogue
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import Store
from tokenwire.core.prompt import Phase
from tokenwire.core.store_calls import StoreCalls
from tokenwire.core.token_ids import TokenIds

__all__ = ("Kept", "KeptAnswer", "Place", "TokenHistory")

NAMESPACE = "history:"
VERSION = 2
ENTRY = 512
"""Bytes that an entry takes in memory beside its value, about."""
SUM = 4
"""Bytes of the sum before a record."""
ID_BYTES = 4
MOST_UNWRITTEN = 256
"""Records that may wait for a slow store; those beyond it are kept here alone."""
LOOKS = 3
"""Of a dialogue's last assistant turns, how many are looked for."""


class KeptAnswer(Struct, frozen=True, array_like=True):
    """One choice's answer. `ids` as u32 little endian."""

    ids: bytes
    text: str
    is_plain: bool
    """Whether it has neither special tokens nor text that spells one."""


class Kept(Struct, frozen=True, array_like=True):
    """One answered prompt."""

    version: int
    digests: Digests
    now: float
    """The time that the template was told, Unix seconds."""
    ids: bytes
    """The prompt's, u32 little endian."""
    characters: int
    """Length of its text as rendered, client spellings hidden."""
    text_digest: bytes
    """sha256 of that text."""
    phase: Phase
    answers: tuple[KeptAnswer, ...]

    @property
    def prompt(self) -> TokenIds:
        return TokenIds.from_le(self.ids)


class Place(Struct, frozen=True):
    """Whose conversation, and with which rendering."""

    fingerprint: str
    tenant: str
    salt: str = ""
    session: str | None = None

    def key(self, digest: bytes) -> str:
        return f"{self.fingerprint[:32]}/{digest.hex()}/{_named(self.salt)}"

    def last(self, digests: Digests) -> str:
        """Of the pointer to the conversation's last record."""
        named = f"session/{_named(self.session)}" if self.session else digests.anchor.hex()
        return f"last/{self.fingerprint[:32]}/{named}/{_named(self.salt)}"


@final
class TokenHistory:
    """`ttl_s`: how long a record is kept in the store; `capacity`: bytes that are kept here."""

    def __init__(
        self,
        store: Store,
        ttl_s: float,
        *,
        capacity: int = 64 * 1024 * 1024,
        max_bytes: int = 8 * 1024 * 1024,
        lookup_s: float = 0.05,
    ) -> None:
        """Larger records than `max_bytes` are not kept; `lookup_s`: what a request waits for the
        store. The store stays the caller's to close."""
        self._store = store
        self._ttl_s = ttl_s
        self._capacity = capacity
        self._max_bytes = max_bytes
        self._calls = StoreCalls(lookup_s)
        self._unwritten: deque[tuple[str, Mapping[str, bytes]]] = deque()
        self._waiting = 0
        """Bytes of `_unwritten`: a store that hangs must not cost more than what is kept here."""
        self._is_writing = False
        self._near: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0

    async def find(self, place: Place, dialogue: Dialogue, digests: Digests) -> Kept | None:
        """What was kept of the latest answer in this dialogue's history."""
        namespace = NAMESPACE + place.tenant
        keys = [place.key(digests.chain(turn)) for turn in _answered(dialogue)]
        for key in keys:
            data = self._near.get((namespace, key))
            if data is not None:
                self._near.move_to_end((namespace, key))
                return _unpacked(data)
        for key in keys[:1]:
            _, data = await self._calls.ask(partial(self._store.get, namespace, key))
            if data is not None:
                self._remember((namespace, key), data)
                return _unpacked(data)
        return None

    async def last(self, place: Place, digests: Digests) -> Kept | None:
        """What was kept last of what seems to be the same conversation, to compare with."""
        namespace = NAMESPACE + place.tenant
        key = place.last(digests)
        pointer = self._near.get((namespace, key))
        if pointer is None:
            _, pointer = await self._calls.ask(lambda: self._store.get(namespace, key))
        if pointer is None:
            return None
        target = pointer.decode("utf-8", "replace")
        data = self._near.get((namespace, target))
        if data is None:
            _, data = await self._calls.ask(lambda: self._store.get(namespace, target))
        return None if data is None else _unpacked(data)

    def keep(self, place: Place, kept: Kept) -> None:
        """Does not wait for the store."""
        namespace = NAMESPACE + place.tenant
        data = _packed(kept)
        if len(data) > self._max_bytes:
            return
        key = place.key(kept.digests.chain(len(kept.digests.turns)))
        values = {key: data, place.last(kept.digests): key.encode()}
        for name, value in values.items():
            self._remember((namespace, name), value)
        if len(self._unwritten) < MOST_UNWRITTEN and self._waiting < self._capacity:
            self._unwritten.append((namespace, values))
            self._waiting += sum(map(len, values.values()))
        if not self._is_writing:
            self._is_writing = self._calls.leave(self._write)

    async def _write(self) -> None:
        # Why one for all: calls often end together, and a task each would cost more than the store.
        # Why no more of them: each round has its time.
        try:
            for _ in range(len(self._unwritten)):
                namespace, values = self._unwritten.popleft()
                self._waiting -= sum(map(len, values.values()))
                with suppress(StoreError):
                    # Why in this order: the last record is only pointed to once it is there.
                    for name, value in values.items():
                        await self._store.set(namespace, name, value, ttl_s=self._ttl_s)
        finally:
            self._is_writing = bool(self._unwritten) and self._calls.leave(self._write)

    async def close(self) -> None:
        """Ends what is under way beside requests. A second call does nothing."""
        self._unwritten.clear()
        self._waiting = 0
        await self._calls.close()

    def _remember(self, key: tuple[str, str], data: bytes) -> None:
        old = self._near.pop(key, None)
        self._near[key] = data
        self._size += len(data) + ENTRY - (0 if old is None else len(old) + ENTRY)
        while self._size > self._capacity:
            _, gone = self._near.popitem(last=False)
            self._size -= len(gone) + ENTRY


def _answered(dialogue: Dialogue) -> Iterator[int]:
    """Indices of the last assistant turns, latest first, but for one that is to be gone on with."""
    turns = dialogue.turns
    found = 0
    for index in range(len(turns) - 1 - dialogue.continue_final, 0, -1):
        if turns[index].role == "assistant":
            yield index
            found += 1
            if found == LOOKS:
                return


def _named(word: str) -> str:
    """For a key: as long for every word, and none spells the next part of it. "" stays so."""
    return sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:32] if word else ""


def _packed(kept: Kept) -> bytes:
    body = msgspec.msgpack.encode(kept)
    return crc32(body).to_bytes(SUM, "big") + body


def _unpacked(data: bytes) -> Kept | None:
    """None for what is damaged, or of another version."""
    body = memoryview(data)[SUM:]
    # Why a sum: nothing else tells of other ids, and they would go into the prompt.
    if crc32(body).to_bytes(SUM, "big") != data[:SUM]:
        return None
    try:
        kept = msgspec.msgpack.decode(body, type=Kept)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    counts = (len(kept.ids), *(len(answer.ids) for answer in kept.answers))
    is_whole = not any(count % ID_BYTES for count in counts)
    return kept if kept.version == VERSION and is_whole else None
