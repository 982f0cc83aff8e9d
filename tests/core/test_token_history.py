"""Records of conversations reach the store, however many calls end at once; also if one fails."""

from __future__ import annotations

import asyncio

from msgspec import structs

from tokenwire.core.conversation import digests
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, Store
from tokenwire.core.token_history import VERSION, Kept, KeptAnswer, Place, TokenHistory

MANY = 200
PLACE = Place("f", "t")


class Watched(Store):
    """Lets the loop go on before each `set`; the one numbered `fails` (from 0) raises."""

    def __init__(self, fails: int = -1) -> None:
        self.fails = fails
        self.named: list[str] = []

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        await asyncio.sleep(0)
        if len(self.named) == self.fails:
            self.fails = -1
            raise StoreError("full")
        self.named.append(key)

    async def get(self, namespace: str, key: str) -> bytes | None:
        return None

    async def delete(self, namespace: str, key: str) -> bool:
        return False

    async def keys(self, namespace: str) -> tuple[str, ...]:
        return ()

    async def apply(self, op: AtomicOp, namespace: str, key: str) -> float:
        return 0.0

    async def close(self) -> None: ...


def asked(number: int) -> Dialogue:
    return Dialogue((Turn("user", (Text(f"question {number}"),)),))


def kept(number: int) -> Kept:
    said = digests(asked(number))
    return Kept(VERSION, said, 0.0, b"\1\0\0\0", 1, b"x" * 32, "content", ())


def keep_many(store: Watched, *, late: int = 0) -> set[str]:
    """Which records another process finds."""

    async def run() -> set[str]:
        history = TokenHistory(store, 60.0)
        for number in range(MANY):
            history.keep(PLACE, kept(number))
        await asyncio.sleep(0)
        for number in range(MANY, MANY + late):
            history.keep(PLACE, kept(number))
        for _ in range(8 * (MANY + late)):
            await asyncio.sleep(0)
        await history.close()
        return set(store.named)

    return asyncio.run(run())


def keys(count: int) -> set[str]:
    return {PLACE.key(kept(number).digests.chain(1)) for number in range(count)}


def test_all_that_end_at_once_are_written() -> None:
    assert keys(MANY) <= keep_many(Watched())


def test_what_ends_while_others_are_written_is_written_too() -> None:
    assert keys(MANY + 30) <= keep_many(Watched(), late=30)


def test_one_that_the_store_refuses_holds_up_no_other() -> None:
    assert len(keys(MANY) - keep_many(Watched(fails=10))) == 1


def test_a_record_is_there_before_it_is_pointed_to() -> None:
    store = Watched()
    keep_many(store)
    assert not store.named[0].startswith("last/")
    assert store.named[1].startswith("last/")


class Shelf(Watched):
    """Gives back what was set."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, bytes] = {}

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        self.values[key] = value

    async def get(self, namespace: str, key: str) -> bytes | None:
        return self.values.get(key)


def found(values: dict[str, bytes]) -> Kept | None:
    """What a process of its own finds for the turn after question 0."""

    async def run() -> Kept | None:
        store = Shelf()
        store.values = values
        history = TokenHistory(store, 60.0)
        turns = (*asked(0).turns, Turn("assistant", (Text("yes"),)), *asked(1).turns)
        dialogue = Dialogue(turns)
        try:
            return await history.find(PLACE, dialogue, digests(dialogue))
        finally:
            await history.close()

    return asyncio.run(run())


def stored(record: Kept) -> dict[str, bytes]:
    async def run() -> dict[str, bytes]:
        store = Shelf()
        history = TokenHistory(store, 60.0)
        history.keep(PLACE, record)
        await asyncio.sleep(0.01)
        await history.close()
        return store.values

    return asyncio.run(run())


def test_a_damaged_record_is_none() -> None:
    values = stored(kept(0))
    assert found(values) == kept(0)
    key = next(key for key in values if not key.startswith("last"))
    data = values[key]
    for at in range(len(data)):
        for other in (data[:at], data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :]):
            assert found({key: other}) is None, at
    assert found(stored(structs.replace(kept(0), version=VERSION + 1))) is None
    odd = structs.replace(kept(0), answers=(KeptAnswer(b"\1\0\0", "yes", True),))
    assert found(stored(odd)) is None


def test_no_salt_or_session_spells_the_key_of_another() -> None:
    said = digests(asked(0))
    one = Place("f", "t", salt="b/c", session="a")
    other = Place("f", "t", salt="c", session="a/b")
    assert one.last(said) != other.last(said)
    assert len(Place("f", "t", salt="s" * 10**6).key(said.chain(1))) < 200
