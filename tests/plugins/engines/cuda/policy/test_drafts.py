"""Drafts: budget and blocks are set aside for them, and what was wrong is taken back."""

from __future__ import annotations

import pytest

from tests.plugins.engines.cuda.policy.rig import SIZE, Rig, answer, next_id
from tokenwire.plugins.engines.cuda.policy.sequence import Sequence


def ready(rig: Rig, output: int = 20, length: int = 6) -> Sequence:
    seq = rig.add(length, output)
    rig.step()
    return seq


def foresee(seq: Sequence, right: int, wrong: int = 0) -> list[int]:
    tokens = list(seq.tokens)
    for _ in range(right):
        tokens.append(next_id(tokens))
    return [*tokens[len(seq.tokens) :], *([99] * wrong)]


@pytest.mark.parametrize(("right", "wrong"), [(0, 1), (0, 4), (1, 0), (1, 3), (4, 0), (9, 2)])
def test_as_many_are_taken_as_are_right(right: int, wrong: int) -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, right, wrong)
    (row,) = rig.step().rows
    assert row.count == 1 + right + wrong
    assert len(row.drafts) == right + wrong
    assert seq.output_tokens == 1 + right + 1
    assert seq.computed == len(seq.tokens) - 1
    assert list(seq.tokens[6:]) == answer(range(6), right + 2)


def test_a_row_with_drafts_is_no_decode_row() -> None:
    rig = Rig()
    seq = ready(rig)
    other = rig.add([9] * 4, 8)
    rig.step()
    seq.drafts = foresee(seq, 2)
    plan = rig.step()
    assert plan.decode_rows == 1
    assert [row.seq for row in plan.rows] == [other, seq]
    assert plan.tokens == 4


def test_drafts_are_used_once() -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, 1, 1)
    rig.step()
    assert seq.drafts == []
    assert rig.step().rows[0].count == 1


def test_until_they_retire_there_is_no_next_row() -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, 2)
    rig.schedule()
    assert seq.drafting == 2
    assert rig.schedule().rows == ()
    rig.land()
    assert len(rig.schedule().rows) == 1


def test_with_drafts_it_waits_for_the_id_in_flight_which_takes_them_away() -> None:
    rig = Rig()
    seq = ready(rig)
    rig.schedule()
    seq.drafts = [1, 2]
    assert rig.schedule().rows == ()
    rig.land()
    assert seq.drafts == []
    assert rig.schedule().rows[0].count == 1
    rig.land()


def test_drafts_proposed_anew_after_each_id_are_used_in_overlapping_steps() -> None:
    rig = Rig(depth=1)
    seq = rig.add(6, 20)
    drafted = 0
    while not rig.scheduler.is_idle:
        plan = rig.schedule()
        drafted += sum(len(row.drafts) for row in plan.rows)
        while len(rig.flight) > (1 if plan.rows else 0):
            rig.retire()
            if seq.tables and seq.output_tokens:
                seq.drafts = foresee(seq, 2, 1)
    assert drafted >= 12
    assert list(seq.tokens[6:26]) == answer(range(6), 20)


@pytest.mark.parametrize(("budget", "drafts"), [(64, 5), (6, 5), (4, 3), (1, 0)])
def test_the_budget_cuts_them(budget: int, drafts: int) -> None:
    rig = Rig(max_batch_tokens=budget)
    seq = rig.add(1, 20)
    rig.step()
    seq.drafts = foresee(seq, 5)
    (row,) = rig.step().rows
    assert len(row.drafts) == drafts


@pytest.mark.parametrize("output", [2, 3, 4, 5, 9])
def test_the_length_cuts_them(output: int) -> None:
    rig = Rig()
    seq = ready(rig, output)
    seq.drafts = foresee(seq, 8)
    rig.run()
    assert seq.output_tokens == output


def test_without_blocks_for_drafts_the_row_goes_without() -> None:
    rig = Rig(4)
    seq = ready(rig, output=11)
    other = rig.add([9] * 6, 3)
    rig.step()
    seq.drafts = foresee(seq, 5)
    plan = rig.step()
    assert not plan.preempted
    assert {row.seq for row in plan.rows} == {seq, other}
    assert all(row.count == 1 for row in plan.rows)


def test_blocks_are_set_aside_for_drafts() -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, 0, 7)
    rig.schedule()
    assert seq.room >= 6 + 1 + 7
    rig.land()
    assert seq.computed == 7


def test_a_block_of_wrong_drafts_has_no_name() -> None:
    rig = Rig()
    seq = ready(rig, length=SIZE - 1)
    seq.drafts = foresee(seq, 0, 9)
    rig.step()
    assert seq.stored == 1
    assert len(rig.events) == 1


def test_a_block_of_right_drafts_has_its_name() -> None:
    rig = Rig()
    seq = ready(rig, length=SIZE - 1)
    seq.drafts = foresee(seq, 9)
    rig.step()
    assert seq.stored == (SIZE - 1 + 1 + 9) // SIZE
    turn = rig.add([*seq.tokens, 1], 1)
    rig.step()
    assert turn.cached_tokens == seq.stored * SIZE


def test_an_id_in_place_of_a_right_draft_takes_the_rest_back() -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, 3)
    (row,) = rig.scheduler.schedule(0).rows
    rig.scheduler.retire(row, [row.drafts[0], 50, 51])
    assert seq.computed == row.start + 2
    (row,) = rig.scheduler.schedule(0).rows
    assert (row.start, row.count) == (8, 2)


def test_drafts_go_with_the_blocks() -> None:
    rig = Rig()
    seq = ready(rig)
    seq.drafts = foresee(seq, 2)
    rig.scheduler.park(seq, keep=False)
    assert seq.drafts == []


def test_drafts_beside_a_preemption_say_the_same() -> None:
    rig = Rig(8)
    seqs = [rig.add([index] * 6, 16) for index in range(3)]
    for _ in range(200):
        for seq in seqs:
            if seq.output_tokens and not seq.pending:
                seq.drafts = foresee(seq, seq.output_tokens % 3, 1)
        if rig.scheduler.is_idle:
            break
        rig.step()
    for index, seq in enumerate(seqs):
        assert list(seq.tokens[6:22]) == answer([index] * 6, 16)


@pytest.mark.parametrize("budget", [3, 5, 64])
@pytest.mark.parametrize("right", [0, 1, 3])
def test_drafts_change_nothing(budget: int, right: int) -> None:
    rig = Rig(max_batch_tokens=budget, windows=(0, 6))
    seqs = [rig.add([index] * 6, 16) for index in range(3)]
    while not rig.scheduler.is_idle:
        rig.step()
        for seq in seqs:
            if seq.tables and seq.output_tokens and not seq.pending:
                seq.drafts = foresee(seq, right, 2)
    for index, seq in enumerate(seqs):
        assert list(seq.tokens[6:]) == answer([index] * 6, 16)
