"""Abort and park, in every state and with steps in flight: nothing leaks, nothing hangs."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import Rig, answer
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State


def fresh(index: int, length: int) -> list[int]:
    return [1000 + index] * length


def in_state(rig: Rig, name: str) -> Sequence:
    """A sequence brought where it is to be aborted."""
    seq = rig.add(11, 8)
    match name:
        case "waiting":
            pass
        case "parked":
            rig.scheduler.park(seq)
        case "prefill":
            rig.step()
            assert seq.target - seq.computed > 1
        case "prefill in flight":
            rig.schedule()
        case "decode":
            for _ in range(5):
                rig.step()
            assert seq.output_tokens
        case "decode in flight":
            for _ in range(5):
                rig.step()
            rig.schedule()
            assert seq.pending
        case "two in flight":
            for _ in range(5):
                rig.step()
            rig.schedule()
            rig.schedule()
            assert seq.pending == 2
        case "parked with blocks":
            rig.step()
            rig.scheduler.park(seq)
            assert seq.tables
        case "parked in flight":
            rig.schedule()
            rig.scheduler.park(seq)
        case "unparked with blocks":
            rig.step()
            rig.scheduler.park(seq)
            rig.scheduler.unpark(seq)
        case "preempted":
            rig.step()
            rig.scheduler.park(seq, keep=False)
            rig.scheduler.unpark(seq)
        case "preempted in flight":
            rig.schedule()
            rig.scheduler.park(seq, keep=False)
            rig.scheduler.unpark(seq)
        case "drafts in flight":
            for _ in range(5):
                rig.step()
            seq.drafts = [1, 2, 3]
            rig.schedule()
            assert seq.drafting == 3
    return seq


STATES = (
    "waiting",
    "parked",
    "prefill",
    "prefill in flight",
    "decode",
    "decode in flight",
    "two in flight",
    "parked with blocks",
    "parked in flight",
    "unparked with blocks",
    "preempted",
    "preempted in flight",
    "drafts in flight",
)


@pytest.mark.parametrize("windows", [(0,), (0, 5)])
@pytest.mark.parametrize("name", STATES)
def test_aborted_in_any_state_nothing_is_left(name: str, windows) -> None:
    rig = Rig(max_batch_tokens=4, windows=windows)
    seq = in_state(rig, name)
    rig.scheduler.abort(seq)
    rig.scheduler.abort(seq)
    rig.check()
    assert seq.state is State.OVER
    assert (rig.scheduler.running, rig.scheduler.waiting) == (0, 0)
    board = rig.scheduler._board
    assert not board.holders | board.parked
    assert not board.promises._leaders
    rig.land()
    assert rig.scheduler.is_idle
    for pool in rig.kv.pools:
        assert pool.protected == 0
    assert rig.scheduler.schedule(0).rows == ()


@pytest.mark.parametrize("steps", range(8))
def test_others_go_on_as_if_alone(steps: int) -> None:
    rig = Rig(max_batch_tokens=4, depth=1)
    other = rig.add(fresh(0, 9), 12)
    seq = rig.add(11, 8)
    for _ in range(steps):
        rig.step()
    rig.scheduler.abort(seq)
    rig.run()
    assert list(other.tokens[9:]) == answer(fresh(0, 9), 12)


@pytest.mark.parametrize("name", STATES)
def test_parked_and_unparked_in_any_state_it_ends_right(name: str) -> None:
    for keep in (True, False):
        rig = Rig(max_batch_tokens=4)
        seq = in_state(rig, name)
        rig.scheduler.park(seq, keep=keep)
        assert seq.state is State.PARKED
        assert rig.schedule().rows == ()
        rig.land()
        rig.check()
        rig.scheduler.unpark(seq)
        rig.run()
        assert list(seq.tokens[11:]) == answer(range(11), 8)


def test_blocks_of_a_step_in_flight_come_back_when_it_retires() -> None:
    rig = Rig()
    seq = rig.add(9, 4)
    rig.schedule()
    rig.scheduler.abort(seq)
    assert rig.kv.pools[0].protected == 3
    assert not rig.scheduler.is_idle
    rig.retire()
    assert rig.kv.pools[0].protected == 0


def test_results_after_the_end_are_void() -> None:
    rig = Rig()
    seq = rig.add(4, 4)
    plan = rig.scheduler.schedule(0)
    rig.scheduler.abort(seq)
    assert not rig.scheduler.retire(plan.rows[0], [5])
    assert seq.output_tokens == 0


def test_a_parked_one_keeps_its_blocks_until_others_need_them() -> None:
    rig = Rig(6)
    parked = rig.add(fresh(0, 8), 4)
    rig.step()
    rig.scheduler.park(parked)
    other = rig.add(fresh(1, 16), 8)
    rig.step()
    assert parked.tables
    plans = [rig.step() for _ in range(2)]
    assert not parked.tables
    assert any(parked in plan.preempted for plan in plans)
    rig.scheduler.unpark(parked)
    rig.run()
    assert other.output_tokens == 8
    assert list(parked.tokens[8:]) == answer(fresh(0, 8), 4)


def test_where_nobody_runs_a_parked_one_does_not_hold_up_the_queue() -> None:
    rig = Rig(6)
    parked = rig.add(fresh(0, 20), 4)
    rig.step()
    rig.scheduler.park(parked)
    other = rig.add(fresh(1, 16), 1)
    for _ in range(3):
        rig.step()
    assert other.output_tokens == 1


def test_parking_takes_no_place_in_the_batch() -> None:
    rig = Rig(max_batch_size=1)
    rig.scheduler.park(rig.add(fresh(0, 4), 4))
    other = rig.add(fresh(1, 4), 4)
    assert [row.seq for row in rig.step().rows] == [other]


def test_unpark_and_park_of_what_is_over_do_nothing() -> None:
    rig = Rig()
    seq = rig.add(4, 4)
    rig.scheduler.abort(seq)
    rig.scheduler.park(seq)
    rig.scheduler.unpark(seq)
    assert seq.state is State.OVER
    assert rig.scheduler.is_idle


def test_a_parked_one_given_up_later_gives_its_blocks_back() -> None:
    rig = Rig()
    seq = rig.add(9, 4)
    rig.step()
    rig.scheduler.park(seq)
    rig.scheduler.park(seq, keep=False)
    assert rig.kv.pools[0].protected == 0
    rig.scheduler.unpark(seq)
    rig.run()
    assert seq.output_tokens == 4


def test_aborts_before_anything_ran_leak_nothing() -> None:
    rig = Rig()
    for index in range(200):
        rig.scheduler.abort(rig.add([index], 4))
    assert rig.scheduler.is_idle
    assert rig.scheduler.status().blocks_free == 100


def test_what_a_poisoned_one_computed_is_found_by_nobody() -> None:
    rig = Rig()
    first = rig.add(9, 4)
    rig.step()
    seq = rig.add(13, 8)
    rig.step()
    assert len(rig.events) == 3
    rig.scheduler.forget(seq)
    rig.hear()
    assert rig.events == set()
    rig.scheduler.abort(first)
    for _ in range(4):
        rig.step()
    assert seq.stored == 4
    assert rig.events == set()
    rig.scheduler.abort(seq)
    rig.run()
    again = rig.add(13, 2)
    rig.step()
    assert again.cached_tokens == 0


def test_a_twin_that_another_computed_is_still_found() -> None:
    rig = Rig()
    rig.add(8, 4)
    seq = rig.add(8, 4)
    rig.step()
    rig.scheduler.forget(seq)
    rig.scheduler.abort(seq)
    rig.land()
    assert len(rig.events) == 2


def test_forgetting_one_that_never_ran_is_nothing() -> None:
    rig = Rig()
    seq = rig.add(8, 4)
    rig.scheduler.forget(seq)
    rig.scheduler.abort(seq)
    assert rig.scheduler.is_idle
