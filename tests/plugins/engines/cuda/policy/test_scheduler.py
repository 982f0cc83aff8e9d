"""Budgets, chunks, order and refusals of the scheduler."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import ROOT, SIZE, Rig, answer
from tokenwire.plugins.engines.cuda.policy.forecast import Forecast
from tokenwire.plugins.engines.cuda.policy.kv import BlockTables
from tokenwire.plugins.engines.cuda.policy.limits import GroupSpec, Limits
from tokenwire.plugins.engines.cuda.policy.plan import Plan
from tokenwire.plugins.engines.cuda.policy.scheduler import Scheduler
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence, State


def counts(plan: Plan) -> list[int]:
    return [row.count for row in plan.rows]


def fresh(index: int, length: int) -> list[int]:
    """A prompt that shares nothing with others."""
    return [1000 + index] * length


def test_nothing_to_do_is_an_empty_plan() -> None:
    rig = Rig()
    plan = rig.step()
    assert (plan.rows, plan.tokens, plan.decode_rows) == ((), 0, 0)
    assert rig.scheduler.is_idle


def test_steps_are_numbered() -> None:
    rig = Rig()
    assert [rig.step().step for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("length", "budget", "cap", "wanted"),
    [
        (10, 64, 0, [10]),
        (10, 10, 0, [10]),
        (10, 4, 0, [4, 4, 2]),
        (10, 1, 0, [1] * 10),
        (10, 64, 3, [3, 3, 3, 1]),
        (10, 2, 3, [2] * 5),
        (9, 4, 0, [4, 4, 1]),
        (1, 64, 0, [1]),
    ],
)
def test_a_prompt_is_computed_in_chunks(length, budget, cap, wanted) -> None:
    rig = Rig(max_batch_tokens=budget, long_prefill_tokens=cap)
    seq = rig.add(length, 3)
    for count in wanted:
        (row,) = rig.step().rows
        assert row.count == count
        assert row.samples == (row.start + row.count == length)
    assert seq.output_tokens == 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("budget", [1, 3, 4, 5, 64])
def test_chunks_and_blocks_of_any_size_say_the_same(size: int, budget: int) -> None:
    rig = Rig(size=size, max_batch_tokens=budget)
    rig.add(11, 6)
    rig.add([*range(9), 5, 5, 5], 6)
    rig.run()
    for seq in rig.known:
        prompt = seq.tokens[: seq.prompt_tokens]
        assert list(seq.tokens[seq.prompt_tokens :]) == answer(prompt, 6)


def test_several_prompts_share_a_step() -> None:
    rig = Rig(max_batch_tokens=25)
    for index in range(3):
        rig.add(fresh(index, 10), 4)
    assert counts(rig.step()) == [10, 10, 5]
    assert counts(rig.step()) == [1, 1, 5]
    assert counts(rig.step()) == [1, 1, 1]


def test_decoding_goes_before_prompts_and_comes_first_in_the_plan() -> None:
    rig = Rig(max_batch_tokens=8)
    rig.add(fresh(0, 4), 20)
    rig.step()
    rig.add(fresh(1, 30), 4)
    rig.add(fresh(2, 30), 4)
    plan = rig.step()
    assert counts(plan) == [1, 7]
    assert plan.decode_rows == 1
    assert plan.rows[0].seq is rig.known[0]


def test_an_old_long_prompt_does_not_stop_young_decoding() -> None:
    rig = Rig(max_batch_tokens=8)
    long = rig.add(fresh(0, 100), 2, priority=1)
    rig.step()
    rig.scheduler.park(long)
    rig.add(fresh(1, 4), 30)
    rig.step()
    rig.scheduler.unpark(long)
    rig.step()
    for _ in range(5):
        assert counts(rig.step()) == [1, 7]


def test_the_cap_lets_short_prompts_beside_a_long_one() -> None:
    rig = Rig(max_batch_tokens=16, long_prefill_tokens=8)
    rig.add(fresh(0, 100), 2)
    rig.add(fresh(1, 6), 2)
    assert counts(rig.step()) == [8, 6]


def test_several_long_prompts_have_equal_chunks() -> None:
    rig = Rig(max_batch_tokens=16, long_prefill_tokens=4)
    for index in range(5):
        rig.add(fresh(index, 40), 2)
    assert counts(rig.step()) == [4, 4, 4, 4]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_no_more_run_than_there_are_places(places: int) -> None:
    rig = Rig(max_batch_size=places)
    for index in range(5):
        rig.add(fresh(index, 4), 3)
    for _ in range(3):
        assert len(rig.step().rows) == places
    assert (rig.scheduler.running, rig.scheduler.waiting) == (0, 5 - places)


def test_more_decode_than_the_budget_allows() -> None:
    rig = Rig(max_batch_tokens=4)
    for index in range(6):
        rig.add([index], 5)
    rig.step()
    rig.step()
    assert rig.scheduler.running <= 6
    assert len(rig.step().rows) == 4
    rig.run()


def test_first_come_first_served() -> None:
    rig = Rig(max_batch_size=1)
    seqs = [rig.add(fresh(index, 4), 2) for index in range(4)]
    ended = []
    while not rig.scheduler.is_idle:
        rig.step()
        ended += [seq for seq in seqs if seq.state is State.OVER and seq not in ended]
    assert ended == seqs


def test_the_more_urgent_first_and_the_older_of_equals() -> None:
    rig = Rig(max_batch_size=1)
    priorities = [0, 5, 1, 5, -3]
    seqs = [rig.add(fresh(index, 4), 1, priority=one) for index, one in enumerate(priorities)]
    order = [rig.step().rows[0].seq for _ in seqs]
    assert [seqs.index(seq) for seq in order] == [1, 3, 2, 0, 4]


def test_an_order_of_ones_own_is_kept() -> None:
    rig = Rig(max_batch_size=1)
    late = rig.add(fresh(0, 4), 1, order=9)
    early = rig.add(fresh(1, 4), 1, order=2)
    assert [rig.step().rows[0].seq for _ in range(2)] == [early, late]


def test_parked_ones_count_as_waiting() -> None:
    rig = Rig(max_batch_size=1)
    rig.scheduler.park(rig.add(fresh(0, 4), 3))
    rig.scheduler.park(rig.add(fresh(1, 4), 3))
    assert rig.scheduler.waiting == 2


@pytest.mark.parametrize(
    ("prompt", "most", "reason"),
    [
        (0, 5, "no tokens"),
        (5, 5, "leaves no output"),
        (5, 4, "leaves no output"),
        (5, 66, "65 tokens of context, the engine has 64"),
        (5, 42, "11 KV blocks for 41 tokens, the pool has 10"),
    ],
)
def test_what_can_never_run_is_refused_with_a_reason(prompt, most, reason) -> None:
    rig = Rig(10, max_model_len=64)
    assert reason in rig.scheduler.add(Sequence("j", range(prompt), max_tokens=most))
    assert rig.scheduler.is_idle


@pytest.mark.parametrize("most", [6, 40, 41])
def test_what_just_fits_runs_to_its_end(most: int) -> None:
    rig = Rig(10, max_model_len=64)
    seq = rig.add(5, max_tokens=most)
    rig.run()
    assert len(seq.tokens) == most


@pytest.mark.parametrize("length", [63, 64])
def test_a_table_at_full_length_is_as_wide_as_the_context(length: int) -> None:
    rig = Rig(max_model_len=64)
    seq = rig.add(4, max_tokens=length + 1)
    widest = 0
    while seq.state is not State.OVER:
        rig.schedule()
        widest = max(widest, len(seq.tables[0]))
        rig.retire()
    assert widest == 64 // SIZE


@pytest.mark.parametrize("size", [1, 4, 16])
def test_a_full_hit_still_has_a_query(size: int) -> None:
    rig = Rig(size=size)
    for _ in range(3):
        rig.add(16, 1)
        plan = rig.step()
        assert plan.rows[0].count >= 1
        assert plan.rows[0].samples


def test_the_last_id_is_never_computed() -> None:
    rig = Rig()
    seq = rig.add(4, 3)
    rows = [row for _ in range(3) for row in rig.step().rows]
    assert [(row.start, row.count) for row in rows] == [(0, 4), (4, 1), (5, 1)]
    assert seq.output_tokens == 3


def test_grown_tables_are_named_in_the_plan() -> None:
    rig = Rig()
    seq = rig.add(7, 9)
    told = [seq in rig.step().grown for _ in range(8)]
    assert told == [True, False, True, False, False, False, True, False]


def test_ids_that_the_loop_puts_in_place_are_computed_next() -> None:
    rig = Rig()
    seq = rig.add(4, 20, needs_feedback=True)
    (row,) = rig.scheduler.schedule(0).rows
    assert rig.scheduler.retire(row, [7, 8, 9])
    (row,) = rig.scheduler.schedule(0).rows
    assert (row.start, row.count, row.samples) == (4, 3, True)
    assert list(seq.tokens[4:]) == [7, 8, 9]


def test_a_row_that_brings_nothing_stops_its_sequence() -> None:
    rig = Rig()
    seq = rig.add(4, 20)
    (row,) = rig.scheduler.schedule(0).rows
    assert rig.scheduler.retire(row)
    assert rig.scheduler.schedule(0).rows == ()
    rig.scheduler.abort(seq)
    assert rig.scheduler.is_idle


def test_deadlines_are_told_once_and_only_of_the_living() -> None:
    rig = Rig()
    early = rig.add(4, 9, deadline=5.0)
    late = rig.add(4, 9, deadline=7.0)
    gone = rig.add(4, 9, deadline=5.0)
    rig.add(4, 9)
    rig.scheduler.abort(gone)
    assert rig.scheduler.expired(4.9) == ()
    assert rig.scheduler.expired(5.0) == (early,)
    assert rig.scheduler.expired(6.0) == ()
    assert rig.scheduler.expired(99.0) == (late,)


@pytest.mark.parametrize("state", [State.WAITING, State.PARKED, State.RUNNING])
def test_deadlines_come_in_every_state(state: State) -> None:
    rig = Rig()
    seq = rig.add(4, 9, deadline=5.0)
    if state is State.RUNNING:
        rig.step()
    if state is State.PARKED:
        rig.scheduler.park(seq)
    assert seq.state is state
    assert rig.scheduler.expired(5.0) == (seq,)


def test_limits_that_cannot_go_together() -> None:
    kv = BlockTables([GroupSpec(9)], 4, ROOT)
    with pytest.raises(ValueError, match="blocks of 8 and of 4"):
        Scheduler(Limits(1, 1, 8, 1), kv)
    with pytest.raises(ValueError, match="1 at least"):
        Scheduler(Limits(0, 1, 4, 1), kv)


def test_admission_looks_ahead() -> None:
    rig = Rig(20, eager=False)
    rig.scheduler.forecast.ratio = 1.0
    rig.add(fresh(0, 8), 40)
    rig.add(fresh(1, 8), 40)
    assert len(rig.step().rows) == 1
    rig.run()
    assert rig.scheduler.status().preemptions == 0


def test_those_admitted_in_the_same_step_are_counted() -> None:
    rig = Rig(30, eager=False)
    rig.scheduler.forecast.ratio = 1.0
    for index in range(3):
        rig.add(fresh(index, 8), 40)
    assert len(rig.step().rows) == 2


def test_those_that_resume_in_the_same_step_are_counted() -> None:
    rig = Rig(40, eager=False)
    rig.scheduler.forecast.ratio = 1.0
    holder = rig.add(fresh(0, 8), 40, order=3)
    rig.step()
    rig.scheduler.park(holder)
    for order in (1, 2, 4):
        rig.add(fresh(order, 8), 40, order=order)
    rig.scheduler.unpark(holder)
    assert {row.seq.order for row in rig.step().rows} == {1, 2, 3}


def test_one_that_is_alone_is_admitted_whatever_the_forecast() -> None:
    rig = Rig(12, eager=False)
    rig.scheduler.forecast.ratio = 1.0
    lease = [rig.kv.pools[0].take(6)]
    seq = rig.add(fresh(0, 8), 41)
    assert len(rig.scheduler.schedule(0).rows) == 1
    rig.scheduler.abort(seq)
    rig.kv.release(lease)


@pytest.mark.parametrize(("expected", "rows"), [(None, 1), (4, 2), (40, 1), (0, 2)])
def test_an_expected_length_takes_the_place_of_the_forecast(expected, rows: int) -> None:
    rig = Rig(20, eager=False)
    rig.scheduler.forecast.ratio = 1.0
    for index in range(2):
        rig.add(fresh(index, 8), 40, expected_tokens=expected)
    assert len(rig.step().rows) == rows


def test_shared_blocks_are_not_counted_twice_at_admission() -> None:
    rig = Rig(14, eager=False)
    rig.scheduler.forecast.ratio = 0.0
    rig.add(41, 3)
    rig.step()
    rig.add(41, 3)
    assert len(rig.step().rows) == 2


def test_the_forecast_decays_to_its_floor_and_jumps() -> None:
    forecast = Forecast(0.7, 0.1, 600)
    assert forecast.output(100, None) == 70
    for _ in range(1000):
        forecast.decay()
    assert forecast.ratio == pytest.approx(0.1)
    assert forecast.output(100_000, None) == 409
    forecast.jump(made=50, allowed=200, count=2)
    assert forecast.ratio == pytest.approx(0.45)
    forecast.jump(made=10**6, allowed=1, count=2)
    assert forecast.ratio == 1.0
    forecast.jump(made=0, allowed=0, count=0)
    assert forecast.ratio == 1.0


def test_status_counts() -> None:
    rig = Rig(20)
    rig.add(fresh(0, 9), 5)
    rig.step()
    rig.add(fresh(1, 9), 5)
    status = rig.scheduler.status()
    assert (status.running, status.waiting) == (1, 1)
    assert (status.blocks_total, status.blocks_free, status.blocks_protected) == (20, 17, 3)
    rig.run()
    status = rig.scheduler.status()
    assert status.blocks_free + status.blocks_evictable == status.blocks_total


def test_deadlines_of_those_that_are_over_are_not_kept() -> None:
    rig = Rig()
    late = rig.add(4, 9, deadline=9e9)
    for _ in range(1000):
        rig.scheduler.abort(rig.add(4, 9, deadline=1e9))
    assert len(rig.scheduler._deadlines) < 100
    assert rig.scheduler.expired(1e10) == (late,)
