"""Records of conversations reach the store, however many calls end at once; also if one fails."""

from __future__ import annotations

import asyncio

from tokenwire.core.conversation import digests
from tokenwire.core.dialogue import Dialogue, Text, Turn
from tokenwire.core.errors import StoreError
from tokenwire.core.ports.store import AtomicOp, Store
from tokenwire.core.token_history import VERSION, Kept, Place, TokenHistory

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
