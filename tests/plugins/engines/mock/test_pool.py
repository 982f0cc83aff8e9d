"""The mock's block cache against a plain model of it, over random use."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored
from tokenwire.plugins.engines.mock import feed as feeds
from tokenwire.plugins.engines.mock.feed import BlockFeed
from tokenwire.plugins.engines.mock.pool import BlockPool, Holding

TOTAL, SIZE = 8, 2
ROOT = blocks.root("test")
TEXTS = st.lists(st.integers(0, 1), min_size=1, max_size=10)


def chain(ids: list[int]) -> list[bytes]:
    return list(blocks.chain(ROOT, TokenIds(ids), SIZE))


class Recorder:
    """Stands in for the feed: what the events say is held."""

    def __init__(self) -> None:
        self.held: set[bytes] = set()

    def stored(self, hashes, parent) -> None:
        assert not self.held & set(hashes)
        assert parent == b"" or parent in self.held
        self.held |= set(hashes)

    def removed(self, hashes) -> None:
        assert set(hashes) <= self.held
        self.held -= set(hashes)


class Pool(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.feed = Recorder()
        self.pool = BlockPool(TOTAL, SIZE, self.feed)
        self.open: list[tuple[list[int], Holding]] = []

    @rule(ids=TEXTS)
    def opens(self, ids: list[int]) -> None:
        known = chain(ids)
        wanted = 0
        for identity in known:
            if identity not in self.feed.held:
                break
            wanted += 1
        assert self.pool.hit(known) == wanted
        holding = self.pool.open(known, len(ids))
        if holding is None:
            held = {each for _, other in self.open for each in other.shared}
            assert len(set(known) - held) + len(ids) % SIZE > self.pool.free
        else:
            self.open.append((list(ids), holding))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), more=st.lists(st.integers(0, 1), max_size=5))
    def grows_and_closes(self, data: st.DataObject, more: list[int]) -> None:
        index = data.draw(st.integers(0, len(self.open) - 1))
        ids, holding = self.open.pop(index)
        room = (len(holding.shared) + holding.private) * SIZE
        for id in more:
            if len(ids) == room:
                if not self.pool.grow(holding):
                    break
                room += SIZE
            ids.append(id)
        known = len(holding.shared)
        self.pool.close(holding, chain(ids)[known:])

    @invariant()
    def it_adds_up(self) -> None:
        referenced = {each for _, holding in self.open for each in holding.shared}
        private = sum(holding.private for _, holding in self.open)
        assert self.pool.free == TOTAL - len(referenced) - private
        assert self.pool.free >= 0
        assert set(self.pool.hashes()) == self.feed.held
        assert referenced <= self.feed.held
        assert len(self.feed.held) + private <= TOTAL


TestPool = Pool.TestCase
TestPool.settings = settings(stateful_step_count=30)


def test_the_deepest_block_of_a_chain_goes_first() -> None:
    feed = Recorder()
    pool = BlockPool(3, SIZE, feed)
    first = chain([0, 0, 0, 0, 0, 0])
    holding = pool.open(first, 6)
    assert holding is not None
    pool.close(holding, ())
    assert pool.open(chain([1, 1]), 2) is not None
    assert pool.hit(first) == 2


def test_a_reader_that_falls_behind_starts_again(monkeypatch) -> None:
    monkeypatch.setattr(feeds, "MAX_BEHIND", 2)

    async def go() -> None:
        feed = BlockFeed()
        held: list[bytes] = []
        reader = feed.read(lambda: held)
        assert await anext(reader) == BlockSnapshot(0, ())
        feed.stored([b"a"], b"")
        assert await anext(reader) == BlockStored(1, (b"a".hex(),), "")
        for letter in (b"b", b"c", b"d"):
            held.append(letter)
            feed.stored([letter], b"")
        assert await anext(reader) == BlockSnapshot(4, ("62", "63", "64"))
        feed.removed([b"b"])
        feed.close()
        assert [event async for event in reader] == [BlockRemoved(5, ("62",))]

    asyncio.run(go())
