"""What is kept under a tenant: pages, conversations that two add to at once, a store that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tokenwire.core.errors import RequestError, ServiceError, StoreError
from tokenwire.core.factory import Services
from tokenwire.core.host import Host
from tokenwire.core.ports.store import Store
from tokenwire.core.shelf import Shelf, minted, page_of
from tokenwire.core.signing import Keyring
from tokenwire.core.stored import StoredAnswer, StoredConversation, StoredItem
from tokenwire.core.wire import Stamp

KEYS = Keyring([b"k" * 16])
ANSWER = StoredAnswer("resp_1", b"{}", "over", ())
TALK = StoredConversation("conv_1", 1, b"{}")
ITEMS = tuple(StoredItem(f"i{k}", b"{}") for k in range(5))


def store() -> Store:
    made: Store = Host().stores.build("memory", {}, Services(KEYS), "cache")
    return made


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_tenants_and_ids_never_mix() -> None:
    async def play() -> None:
        shelf = Shelf(store(), 60.0)
        await shelf.put("a b", ANSWER)
        for tenant, id_ in (("a", "b resp_1"), ("a", "resp_1"), ("a b", "resp_2")):
            with pytest.raises(RequestError):
                await shelf.answer(tenant, id_)
        assert await shelf.answer("a b", "resp_1") == ANSWER

    run(play())


def test_what_cannot_be_read_is_not_there() -> None:
    async def play() -> None:
        kept = store()
        shelf = Shelf(kept, 60.0)
        await shelf.put("t", ANSWER)
        await shelf.create("t", TALK)
        for namespace in ("stored.answers", "stored.conversations"):
            for key in await kept.keys(namespace):
                await kept.set(namespace, key, b"\xc1", ttl_s=60.0)
        with pytest.raises(RequestError):
            await shelf.answer("t", "resp_1")
        with pytest.raises(RequestError):
            await shelf.conversation("t", "conv_1")

    run(play())


def test_as_many_as_like_add_at_once_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store()
    get = kept.get

    async def later(namespace: str, key: str) -> bytes | None:
        """One turn of the loop after it was read, as a store behind a socket answers."""
        found = await get(namespace, key)
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(kept, "get", later)

    async def play() -> None:
        shelf, other = Shelf(kept, 60.0), Shelf(kept, 60.0)
        await shelf.create("t", TALK)
        items = [StoredItem(f"msg_n{k}", b"{}") for k in range(100)]
        shelves = (shelf, other) * 50
        await asyncio.gather(
            *(each.add("t", "conv_1", [item]) for each, item in zip(shelves, items, strict=True))
        )
        talk = await shelf.conversation("t", "conv_1")
        assert {item.id for item in items} <= {item.id for item in talk.items}

    run(play())


def test_two_who_add_at_once_both_have_added() -> None:
    async def play() -> None:
        shelf = Shelf(store(), 60.0)
        await shelf.create("t", TALK)
        await asyncio.gather(*(shelf.add("t", "conv_1", [item]) for item in ITEMS))
        await shelf.add("t", "conv_1", ITEMS[:2])
        talk = await shelf.conversation("t", "conv_1")
        assert sorted(item.id for item in talk.items) == [item.id for item in ITEMS]

    run(play())


class Broken(Store):
    """Every operation fails."""

    async def get(self, namespace: str, key: str) -> bytes | None:
        raise StoreError("gone")

    async def set(
        self, namespace: str, key: str, value: bytes, *, ttl_s: float | None = None
    ) -> None:
        raise StoreError("gone")

    async def delete(self, namespace: str, key: str) -> bool:
        raise StoreError("gone")

    async def keys(self, namespace: str) -> tuple[str, ...]:
        raise StoreError("gone")

    async def apply(self, op: Any, namespace: str, key: str) -> float:
        raise StoreError("gone")

    async def close(self) -> None:
        pass


def test_a_store_that_fails_is_said_to_be_ours() -> None:
    async def play() -> None:
        shelf = Shelf(Broken(), 60.0)
        for work in (
            shelf.put("t", ANSWER),
            shelf.answer("t", "resp_1"),
            shelf.delete("t", ANSWER),
            shelf.add("t", "conv_1", ITEMS),
        ):
            with pytest.raises(ServiceError) as error:
                await work
            assert error.value.status == 503

    run(play())


@pytest.mark.parametrize(
    ("limit", "after", "ascending", "ids", "more"),
    [
        (2, None, True, ["i0", "i1"], True),
        (2, None, False, ["i4", "i3"], True),
        (9, "i1", True, ["i2", "i3", "i4"], False),
        (1, "i1", False, ["i0"], False),
        (3, "i4", True, [], False),
    ],
)
def test_pages(limit: int, after: str | None, ascending: bool, ids: list[str], more: bool) -> None:
    page = page_of(ITEMS, limit=limit, after=after, ascending=ascending)
    assert [item.id for item in page.items] == ids
    assert page.has_more == more


def test_a_page_after_nothing_known_is_refused() -> None:
    with pytest.raises(RequestError):
        page_of(ITEMS, limit=1, after="nobody", ascending=True)


def test_ids_are_minted_where_they_are_missing() -> None:
    stamp = Stamp("r", 1.0, b"0" * 16)
    items = minted([StoredItem("msg_", b"{}"), StoredItem("own", b"{}")], stamp)
    assert items[0].id.startswith("msg_")
    assert len(items[0].id) > 20
    assert items[1].id == "own"
