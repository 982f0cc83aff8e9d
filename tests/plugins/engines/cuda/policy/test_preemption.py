"""Who gives way when blocks run out, what that costs, and that nothing is lost."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import Rig, answer
from tokenwire.plugins.engines.cuda.policy.sequence import State


def fresh(index: int, length: int) -> list[int]:
    return [1000 + index] * length


def until_preempted(rig: Rig):
    for _ in range(50):
        plan = rig.step()
        if plan.preempted:
            return plan
    raise AssertionError("nobody gave way")


def test_the_last_gives_way() -> None:
    rig = Rig(6)
    first, second = rig.add(fresh(0, 8), 12), rig.add(fresh(1, 8), 12)
    plan = until_preempted(rig)
    assert plan.preempted == (second,)
    assert [row.seq for row in plan.rows] == [first]
    assert (second.state, second.computed, second.tables) == (State.WAITING, 0, [])
    assert second.epoch == 1


def test_the_least_urgent_gives_way_though_it_is_older() -> None:
    rig = Rig(6)
    first, second = rig.add(fresh(0, 8), 12), rig.add(fresh(1, 8), 12, priority=3)
    assert until_preempted(rig).preempted == (first,)
    assert second.state is State.RUNNING


def test_what_it_said_is_kept_and_it_ends_as_if_alone() -> None:
    rig = Rig(6)
    seqs = [rig.add(fresh(index, 8), 12) for index in range(2)]
    rig.run()
    assert rig.scheduler.status().preemptions
    for index, seq in enumerate(seqs):
        assert list(seq.tokens[8:]) == answer(fresh(index, 8), 12)


def test_nobody_is_admitted_in_a_step_in_which_somebody_gave_way() -> None:
    rig = Rig(6)
    first, second = rig.add(fresh(0, 8), 12), rig.add(fresh(1, 8), 12)
    rig.step()
    while not (first.computed == first.room and rig.kv.pools[0].available == 0):
        rig.step()
    urgent = rig.add([5], 1, priority=9)
    plan = rig.step()
    assert plan.preempted == (second,)
    assert [row.seq for row in plan.rows] == [first]
    assert urgent in [row.seq for row in rig.step().rows]


@pytest.mark.parametrize("priority", [0, 9])
def test_what_a_prompt_in_chunks_still_needs_is_kept_from_others(priority: int) -> None:
    rig = Rig(9, max_batch_tokens=9)
    first, second = rig.add(fresh(0, 11), 8), rig.add(fresh(1, 24), 3)
    for _ in range(3):
        rig.step()
    assert (len(first.tables[0]), len(second.tables[0])) == (3, 4)
    other = rig.add([5], 2, priority=priority)
    assert [row.seq for row in rig.step().rows] == [first]
    assert rig.kv.pools[0].available == 1
    assert not other.was_admitted
    rig.run()


def test_the_preempted_one_is_the_next_to_be_admitted() -> None:
    rig = Rig(6, max_batch_size=2)
    first, second = rig.add(fresh(0, 8), 12), rig.add(fresh(1, 8), 12)
    third = rig.add(fresh(2, 8), 12)
    until_preempted(rig)
    rig.scheduler.abort(first)
    assert rig.step().rows[0].seq is second
    assert second.preemptions == 1
    assert third.preemptions == 0


def test_it_resumes_through_the_cache() -> None:
    rig = Rig(7)
    first, second = rig.add(fresh(0, 8), 12), rig.add(fresh(1, 8), 12)
    until_preempted(rig)
    rig.scheduler.abort(first)
    plan = rig.step()
    assert plan.rows[0].seq is second
    assert plan.rows[0].start > 0
    assert second.cached_tokens == 0


def test_the_last_in_rank_waits_and_keeps_its_blocks() -> None:
    rig = Rig(6)
    first = rig.add(fresh(0, 13), 3)
    second = rig.add(fresh(1, 8), 12)
    rig.step()
    plan = rig.step()
    assert [row.seq for row in plan.rows] == [first]
    assert second.tables
    assert second.state is State.RUNNING
    rig.run()
    assert rig.scheduler.status().preemptions == 0


def test_a_prompt_in_chunks_takes_from_the_last_though_that_has_a_row() -> None:
    rig = Rig(8, max_batch_tokens=12)
    first = rig.add(fresh(0, 24), 4)
    rig.step()
    second = rig.add(fresh(1, 4), 20)
    rig.scheduler.park(first)
    while len(second.tables[0] if second.tables else ()) < 3:
        rig.step()
    rig.scheduler.unpark(first)
    rig.step()
    plan = until_preempted(rig)
    assert plan.preempted == (second,)
    assert [row.seq for row in plan.rows] == [first]
    assert (second.flying, second.pending) == (0, 0)
    rig.run()


def test_a_jump_of_the_forecast_follows_a_preemption() -> None:
    rig = Rig(6)
    for index in range(2):
        rig.add(fresh(index, 8), 12)
    until_preempted(rig)
    assert rig.scheduler.forecast.ratio > 0


def test_one_alone_never_gives_way() -> None:
    rig = Rig(5)
    rig.add(fresh(0, 8), 13)
    rig.run()
    assert rig.scheduler.status().preemptions == 0


@pytest.mark.parametrize("blocks", [6, 7, 9, 12])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_many_in_a_small_pool_all_end(blocks: int, depth: int) -> None:
    rig = Rig(blocks, depth=depth)
    seqs = [rig.add(fresh(index, 5 + index), 12, priority=index % 2) for index in range(6)]
    rig.run()
    for index, seq in enumerate(seqs):
        assert list(seq.tokens[5 + index :]) == answer(fresh(index, 5 + index), 12)


@pytest.mark.parametrize("when", range(1, 14))
@pytest.mark.parametrize("depth", [0, 1])
def test_preempted_at_any_step_it_says_the_same(when: int, depth: int) -> None:
    rig = Rig(max_batch_tokens=4, depth=depth)
    seq = rig.add(11, 8)
    for _ in range(when):
        rig.step()
    rig.scheduler.park(seq, keep=False)
    rig.check()
    rig.scheduler.unpark(seq)
    rig.run()
    assert list(seq.tokens[11:]) == answer(range(11), 8)
