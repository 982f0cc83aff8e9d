"""Sliding windows: blocks left behind are given back, and a hit needs only what is seen."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import SIZE, Rig
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence


@pytest.mark.parametrize("window", [1, 2, 4, 5, 8, 9])
def test_decoding_gives_back_what_no_window_reaches(window: int) -> None:
    rig = Rig(windows=(window,))
    seq = rig.add(30, 20)
    rig.step()
    most = 0
    while seq.tables:
        held = sum(1 for block in seq.tables[0] if block)
        assert rig.kv.pools[0].protected == held
        most = max(most, held)
        rig.step()
    assert most <= -(-window // SIZE) + 2


def test_a_group_with_a_window_does_not_take_from_one_without() -> None:
    rig = Rig(windows=(0, 4))
    seq = rig.add(30, 10)
    for _ in range(4):
        rig.step()
    full, slid = seq.tables
    assert all(full)
    assert slid.count(0) == 7
    assert len(full) == len(slid)


@pytest.mark.parametrize("windows", [(4,), (0, 4), (0, 4, 9), (1, 0)])
def test_the_next_turn_hits_in_all_groups(windows: tuple[int, ...]) -> None:
    rig = Rig(windows=windows)
    first = rig.add(21, 8)
    rig.run()
    turn = rig.add([*first.tokens, 1, 2, 3], 2)
    rig.step()
    assert turn.cached_tokens == 28
    for window, table in zip(windows, turn.tables, strict=True):
        assert table.count(0) == (max(32 - window + 1, 0) // SIZE if window else 0)


def test_a_hit_in_a_window_needs_only_its_last_blocks() -> None:
    rig = Rig(windows=(0, 5))
    first = rig.add(17, 1)
    rig.run()
    pool = rig.kv.pools[1]
    for name in first.hashes[:3]:
        pool._forget(pool.find(name), name, [])
        pool.evictable -= 1
    again = rig.add(17, 1)
    rig.scheduler.schedule(0)
    assert again.cached_tokens == 16


def test_a_hit_stops_where_the_window_has_gone() -> None:
    rig = Rig(windows=(0, 5))
    first = rig.add(17, 1)
    rig.run()
    pool = rig.kv.pools[1]
    name = first.hashes[3]
    pool._forget(pool.find(name), name, [])
    pool.evictable -= 1
    again = rig.add(17, 1)
    rig.scheduler.schedule(0)
    assert again.cached_tokens == 12


def test_what_full_attention_lost_nobody_hits() -> None:
    rig = Rig(windows=(0, 5))
    first = rig.add(17, 1)
    rig.run()
    pool = rig.kv.pools[0]
    name = first.hashes[1]
    pool._forget(pool.find(name), name, [])
    pool.evictable -= 1
    again = rig.add(17, 1)
    rig.scheduler.schedule(0)
    assert again.cached_tokens == 4


@pytest.mark.parametrize("chunk", [3, 4, 7, 64])
def test_a_long_prompt_runs_in_a_small_window_pool(chunk: int) -> None:
    rig = Rig(windows=(0, 6), pools=(40, 25), max_batch_tokens=chunk)
    seq = rig.add(90, 5)
    rig.run()
    assert seq.output_tokens == 5


def test_a_window_pool_that_is_too_small_for_a_chunk_is_named() -> None:
    rig = Rig(windows=(0, 9), pools=(40, 4), max_batch_tokens=32)
    reason = rig.scheduler.add(Sequence("j", range(60), max_tokens=70))
    assert "the pool has 4" in reason


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_block_stays_while_a_step_in_flight_sees_it(depth: int) -> None:
    rig = Rig(windows=(5,), depth=depth)
    seq = rig.add(12, 20)
    while seq.tables or not seq.was_admitted:
        rig.step()
        oldest = min((row.start for plan in rig.flight for row in plan.rows), default=0)
        if seq.tables and rig.flight:
            assert all(seq.tables[0][max(oldest - 4, 0) // SIZE :])


def test_preempted_with_a_window_it_comes_back_right() -> None:
    rig = Rig(8, windows=(0, 5))
    for start in range(3):
        rig.add(range(start, start + 9), 12)
    rig.run()
    assert rig.scheduler.status().preemptions


def test_groups_are_counted_by_the_first() -> None:
    rig = Rig(windows=(0, 5), pools=(30, 12))
    assert rig.scheduler.status().blocks_total == 30
    assert rig.kv.groups[1] == GroupSpec(13, 5)
