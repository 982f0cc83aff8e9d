"""The block pool: its list, its counts, what goes first, and what its events say."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.rig import check_pool
from tokenwire.core import blocks
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import BlockRemoved, BlockSnapshot, BlockStored
from tokenwire.plugins.engines.cuda.policy.events import EventLog
from tokenwire.plugins.engines.cuda.policy.pool import BlockPool

A, B, C, D = (bytes([letter]) * 32 for letter in b"abcd")


def pool_of(count: int, names: str = "") -> tuple[BlockPool, list[int]]:
    """A pool, and blocks taken from it that have names."""
    pool = BlockPool(count + 1)
    taken = pool.take(len(names))
    pool.store(taken, [name.encode() * 32 for name in names], b"")
    return pool, taken


@pytest.mark.parametrize("blocks_", [0, 1])
def test_a_pool_needs_a_block_beside_the_null_block(blocks_: int) -> None:
    with pytest.raises(ValueError, match="null block"):
        BlockPool(blocks_)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_all_blocks_are_handed_out_and_never_the_null_block(count: int) -> None:
    pool = BlockPool(count + 1)
    assert sorted(pool.take(count)) == list(range(1, count + 1))
    assert (pool.available, pool.protected) == (0, count)
    check_pool(pool)


def test_taking_more_than_there_is_says_so_and_takes_nothing() -> None:
    pool = BlockPool(4)
    with pytest.raises(ValueError, match="wanted 4 blocks, 3 are free"):
        pool.take(4)
    assert pool.available == 3


def test_taking_none_is_allowed() -> None:
    assert BlockPool(2).take(0) == []


def test_released_once_too_often() -> None:
    pool = BlockPool(3)
    taken = pool.take(1)
    pool.release(taken)
    with pytest.raises(ValueError, match="once too often"):
        pool.release(taken)


def test_a_block_is_free_when_its_last_holder_lets_go() -> None:
    pool, taken = pool_of(3, "a")
    pool.hold(taken)
    pool.release(taken)
    assert pool.protected == 1
    pool.release(taken)
    assert (pool.protected, pool.evictable, pool.free) == (0, 1, 2)


def test_the_null_block_is_passed_over() -> None:
    pool = BlockPool(3)
    pool.hold([0, 0])
    pool.release([0])
    assert pool.refs[0] == 0
    check_pool(pool)


def test_blocks_with_nothing_in_them_go_before_cached_ones() -> None:
    pool, taken = pool_of(4, "ab")
    pool.release(taken)
    pool.take(2)
    assert pool.names() == (A, B)


def test_the_deepest_block_of_a_chain_goes_first() -> None:
    pool, taken = pool_of(3, "abc")
    pool.release(taken)
    assert pool.take(1) == [taken[2]]
    assert pool.take(1) == [taken[1]]
    assert pool.names() == (A,)


def test_the_least_recently_used_chain_goes_first() -> None:
    pool, (first, second) = pool_of(2, "ab")
    pool.release([first])
    pool.release([second])
    pool.hold([first])
    pool.release([first])
    assert pool.take(1) == [second]


def test_a_held_block_is_not_evicted() -> None:
    pool, taken = pool_of(2, "ab")
    pool.release(taken)
    pool.hold([taken[1]])
    assert pool.take(1) == [taken[0]]
    assert pool.find(B) == taken[1]


def test_an_evicted_block_is_not_found() -> None:
    pool, taken = pool_of(1, "a")
    pool.release(taken)
    pool.take(1)
    assert pool.find(A) == 0
    assert pool.name_of(taken[0]) is None


def test_two_blocks_of_one_name_serve_until_both_are_gone() -> None:
    pool = BlockPool(3)
    first, second = pool.take(2)
    pool.store([first], [A], b"")
    pool.store([second], [A], b"")
    assert pool.find(A) == first
    pool.release([first])
    pool.take(1)
    assert pool.find(A) == second
    pool.release([second])
    pool.take(1)
    assert pool.find(A) == 0
    check_pool(pool)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_twins_may_go_in_any_order(order: tuple[int, ...]) -> None:
    pool = BlockPool(4)
    taken = pool.take(3)
    for block in taken:
        pool.store([block], [A], b"")
    for index in order:
        pool.release([taken[index]])
    for _ in range(3):
        assert pool.find(A)
        pool.take(1)
        check_pool(pool)
    assert pool.find(A) == 0


def test_a_pinned_block_goes_last() -> None:
    pool, taken = pool_of(4, "abcd")
    pool.pin(taken[:1], 10)
    pool.release(taken[:1])
    pool.release(taken[1:])
    pool.take(3)
    assert pool.names() == (A,)
    check_pool(pool)


def test_a_pin_refuses_nobody() -> None:
    pool, taken = pool_of(2, "ab")
    pool.pin(taken, 10)
    pool.release(taken)
    assert pool.available == 2
    assert len(pool.take(2)) == 2
    assert pool.names() == ()


@pytest.mark.parametrize(("now", "is_kept"), [(9.0, True), (10.0, False)])
def test_a_pin_ends_its_seconds_after_the_last_use(now: float, is_kept: bool) -> None:
    pool, taken = pool_of(2, "ab")
    pool.pin(taken[:1], 10)
    pool.release(taken[:1])
    pool.tick(now)
    pool.release(taken[1:])
    pool.take(1)
    assert (pool.find(A) != 0) == is_kept
    check_pool(pool)


def test_use_renews_a_pin() -> None:
    pool, taken = pool_of(2, "ab")
    pool.pin(taken[:1], 10)
    pool.release(taken[:1])
    pool.tick(8)
    pool.hold(taken[:1])
    pool.release(taken[:1])
    pool.tick(17)
    pool.release(taken[1:])
    pool.take(1)
    assert pool.names() == (A,)


def test_pins_take_half_the_pool_at_most() -> None:
    pool, taken = pool_of(4, "abcd")
    pool.pin(taken, 10)
    pool.release(taken)
    assert len(pool._pinned) == 2
    pool.take(2)
    assert set(pool._ttls) == set(pool._pinned)
    check_pool(pool)


def test_a_longer_pin_wins() -> None:
    pool, taken = pool_of(2, "a")
    pool.pin(taken, 10)
    pool.pin(taken, 5)
    pool.release(taken)
    pool.tick(7)
    assert len(pool._pinned) == 1


def test_a_block_loses_its_pin_with_its_content() -> None:
    pool, taken = pool_of(1, "a")
    pool.pin(taken, 10)
    pool.release(taken)
    assert pool.take(1) == taken
    pool.store(taken, [B], b"")
    pool.release(taken)
    assert not pool._pinned


def test_reset_forgets_what_is_cached() -> None:
    pool, taken = pool_of(3, "ab")
    assert not pool.reset()
    pool.pin(taken[:1], 10)
    pool.release(taken)
    assert pool.reset()
    assert (pool.free, pool.evictable, pool.names()) == (3, 0, ())
    check_pool(pool)


def heard(count: int) -> tuple[BlockPool, EventLog]:
    log = EventLog()
    log.is_heard = True
    return BlockPool(count + 1, log), log


def test_a_chain_is_told_in_one_event_after_its_parent() -> None:
    pool, log = heard(3)
    pool.store(pool.take(2), [B, C], A)
    assert log.take() == (BlockStored(1, (B.hex(), C.hex()), A.hex()),)
    assert log.take() == ()


def test_a_chain_that_is_partly_known_is_told_in_pieces() -> None:
    pool, log = heard(5)
    pool.store(pool.take(1), [B], b"")
    log.take()
    pool.store(pool.take(3), [A, B, C], b"")
    assert log.take() == (BlockStored(2, (A.hex(),)), BlockStored(3, (C.hex(),), B.hex()))


def test_evictions_of_one_call_are_one_event() -> None:
    pool, log = heard(2)
    taken = pool.take(2)
    pool.store(taken, [A, B], b"")
    pool.release(taken)
    log.take()
    pool.take(2)
    assert log.take() == (BlockRemoved(2, (B.hex(), A.hex())),)


def test_a_name_is_removed_with_its_last_block() -> None:
    pool, log = heard(2)
    for block in pool.take(2):
        pool.store([block], [A], b"")
        pool.release([block])
    assert [type(event) for event in log.take()] == [BlockStored]
    pool.take(1)
    assert log.take() == ()
    pool.take(1)
    assert log.take() == (BlockRemoved(2, (A.hex(),)),)


def test_reset_tells_what_went() -> None:
    pool, log = heard(2)
    taken = pool.take(2)
    pool.store(taken, [A, B], b"")
    pool.release(taken)
    log.take()
    assert pool.reset()
    assert log.take() == (BlockRemoved(2, (A.hex(), B.hex())),)
    assert pool.reset()
    assert log.take() == ()


def test_numbers_go_on_while_nobody_listens() -> None:
    log = EventLog()
    log.stored([A], b"")
    log.is_heard = True
    log.removed([A])
    assert log.take() == (BlockRemoved(2, (A.hex(),)),)
    assert log.snapshot([B]) == BlockSnapshot(2, (B.hex(),))


@given(
    count=st.integers(1, 6),
    calls=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=40),
)
def test_the_list_is_a_deque(count: int, calls: list[tuple[int, int]]) -> None:
    pool, order, named, held = BlockPool(count + 1), deque(range(1, count + 1)), {}, []
    for step, (call, pick) in enumerate(calls):
        match call:
            case 0 if order:
                wanted = order.popleft()
                assert pool.take(1) == [wanted]
                named.pop(wanted, None)
                held.append(wanted)
            case 1 if held:
                block = held[pick % len(held)]
                if block not in named:
                    named[block] = step.to_bytes(32, "big")
                    pool.store([block], [named[block]], b"")
            case 2 if held:
                block = held.pop(pick % len(held))
                pool.release([block])
                if block not in held:
                    (order.append if block in named else order.appendleft)(block)
            case 3 if named:
                block = list(named)[pick % len(named)]
                pool.hold([pool.find(named[block])])
                if block in order:
                    order.remove(block)
                held.append(block)
        check_pool(pool)


VECTORS = (
    ("root", "1d1e0de70d06552fc096eb3aadec9d5336d97a7d78173ccd4739387b3990ea25"),
    ("first", "22e38d2518eecce0dc43ad49930ed24d953895dfcce05fbe9d41e27cc7c73416"),
    ("second", "e53dd51c81b30cb6a4383e9fd7f612bc3dfa910a7ce0a47abf3ee90229d9bcfa"),
    ("salted", "507facc4290a325a74c92e0c88cca0c77fb7e008c669202095396aefaf8a34be"),
)


@pytest.mark.parametrize(("which", "wanted"), VECTORS)
def test_the_hash_chain_keeps_its_vectors(which: str, wanted: str) -> None:
    root = blocks.root("model:test|dtype:bf16|block:4")
    first, second = blocks.chain(root, TokenIds(range(1, 9)), 4)
    salted = blocks.block(root, TokenIds(range(1, 5)), b"salt:alice")
    found = {"root": root, "first": first, "second": second, "salted": salted}
    assert found[which].hex() == wanted


def test_pins_that_are_renewed_often_take_no_more_room() -> None:
    pool, taken = pool_of(4, "ab")
    pool.pin(taken[:2], 3600)
    for _ in range(1000):
        pool.release(taken[:2])
        pool.hold(taken[:2])
    pool.release(taken[:2])
    assert len(pool._expiries) < 100
    pool.tick(3601)
    assert not pool._pinned
