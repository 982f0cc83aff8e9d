"""Steps that overlap: rows whose input id is not known yet, results that come too late."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import Rig, answer
from tokenwire.plugins.engines.cuda.policy.sequence import State


def test_the_next_row_is_scheduled_before_its_input_is_known() -> None:
    rig = Rig()
    seq = rig.add(4, 8)
    rig.schedule()
    (row,) = rig.schedule().rows
    assert (row.start, row.count, row.samples) == (4, 1, True)
    assert row.start + row.count > len(seq.tokens)
    assert (seq.pending, seq.target, seq.computed) == (2, 6, 5)
    rig.retire()
    assert (seq.pending, len(seq.tokens)) == (1, 5)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_row_beyond_the_length(depth: int) -> None:
    rig = Rig(depth=depth)
    rig.add(4, 5)
    rows = []
    while not rig.scheduler.is_idle:
        rows += rig.step().rows
    assert [(row.start, row.count) for row in rows] == [(0, 4), *((4 + i, 1) for i in range(4))]


def test_an_end_found_late_makes_the_extra_row_void() -> None:
    rig = Rig()
    seq = rig.add(4, 20)
    rig.schedule()
    rig.schedule()
    rig.retire()
    rig.scheduler.abort(seq)
    assert rig.kv.pools[0].protected == 2
    rig.land()
    assert rig.scheduler.is_idle
    assert seq.output_tokens == 1


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_feedback_waits_for_its_id(depth: int) -> None:
    rig = Rig(depth=depth)
    seq = rig.add(4, 6, needs_feedback=True)
    while not rig.scheduler.is_idle:
        rig.step()
        assert seq.pending <= 1
    rig.land()
    assert list(seq.tokens[4:]) == answer(range(4), 6)


def test_feedback_does_not_hold_up_others() -> None:
    rig = Rig()
    slow = rig.add(4, 6, needs_feedback=True)
    fast = rig.add([9] * 4, 6)
    rig.schedule()
    assert [row.seq for row in rig.schedule().rows] == [fast]
    rig.land()
    assert {row.seq for row in rig.schedule().rows} == {slow, fast}


def test_feedback_does_not_hold_up_its_own_prompt() -> None:
    rig = Rig(max_batch_tokens=4)
    rig.add(10, 6, needs_feedback=True)
    assert [rig.schedule().rows[0].count for _ in range(3)] == [4, 4, 2]


def test_feedback_may_begin_in_the_middle() -> None:
    rig = Rig()
    seq = rig.add(4, 6)
    rig.schedule()
    rig.schedule()
    seq.needs_feedback = True
    assert rig.schedule().rows == ()
    rig.land()
    assert len(rig.schedule().rows) == 1


def test_chunks_overlap() -> None:
    rig = Rig(max_batch_tokens=4)
    seq = rig.add(11, 3)
    rows = [rig.schedule().rows[0] for _ in range(4)]
    assert [(row.start, row.count, row.samples) for row in rows] == [
        (0, 4, False),
        (4, 4, False),
        (8, 3, True),
        (11, 1, True),
    ]
    assert (seq.flying, seq.pending) == (2, 2)
    rig.land()
    assert (seq.flying, seq.pending, seq.stored) == (0, 0, 3)


def test_no_block_is_named_before_its_last_id_is_known() -> None:
    rig = Rig()
    seq = rig.add(7, 8)
    rig.schedule()
    rig.schedule()
    rig.retire()
    assert seq.stored == 1
    rig.retire()
    assert seq.stored == 2


def test_several_ids_for_a_row_while_another_is_in_flight_are_a_fault() -> None:
    rig = Rig()
    rig.add(4, 9)
    first = rig.scheduler.schedule(0)
    rig.scheduler.schedule(0)
    with pytest.raises(ValueError, match="one id while a later step is in flight, got 2"):
        rig.scheduler.retire(first.rows[0], [1, 2])


def test_blocks_of_one_that_gave_way_are_waited_for_and_nobody_else_gives_way() -> None:
    rig = Rig(9, depth=1)
    seqs = [rig.add([1000 + index] * 8, 12) for index in range(3)]
    while not rig.scheduler.status().preemptions:
        plan = rig.step()
    assert plan.preempted == (seqs[2],)
    assert rig.scheduler.status().preemptions == 1
    assert seqs[1].state is State.RUNNING
    rig.run()


def test_results_of_an_epoch_that_is_over_are_dropped_and_made_again() -> None:
    rig = Rig()
    seq = rig.add(4, 5)
    rig.schedule()
    rig.scheduler.park(seq, keep=False)
    rig.scheduler.unpark(seq)
    rig.schedule()
    rig.retire()
    assert seq.output_tokens == 0
    rig.retire()
    assert list(seq.tokens[4:]) == answer(range(4), 1)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("budget", [3, 7, 64])
@pytest.mark.parametrize("windows", [(0,), (0, 6)])
def test_overlap_changes_nothing(depth: int, budget: int, windows) -> None:
    rig = Rig(14, depth=depth, max_batch_tokens=budget, windows=windows)
    prompts = [[*range(3), *([index] * (5 + index))] for index in range(5)]
    seqs = [rig.add(prompt, 9) for prompt in prompts]
    rig.run()
    for prompt, seq in zip(prompts, seqs, strict=True):
        assert list(seq.tokens[len(prompt) :]) == answer(prompt, 9)
