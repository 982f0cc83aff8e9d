"""When a choice ends: every stopping rule on hand-made ids, and one property over random ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.progress import Progress
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import JobStopping, ReasoningBudget, TokenJob

EOS = 2


def progress(*, resume=(), reasoning=None, context=1000, prompt=(1, 1, 1), **stopping) -> Progress:
    job = TokenJob(
        job="j",
        model="m",
        prompt=TokenIds(prompt),
        resume_ids=TokenIds(resume),
        stopping=JobStopping(**stopping),
        reasoning=reasoning,
    )
    return Progress(job, eos_ids=(EOS,), context_length=context)


def play(machine: Progress, ids) -> list[int]:
    sent: list[int] = []
    for id in ids:
        if machine.finish is not None:
            break
        forced = machine.forced()
        while forced is not None and machine.finish is None:
            sent.extend(machine.push(forced))
            forced = machine.forced()
        if machine.finish is None:
            sent.extend(machine.push(id))
    return sent


def why(machine: Progress):
    finish = machine.finish
    return None if finish is None else (finish.cause.value, list(finish.matched))


def test_max_tokens() -> None:
    machine = progress(max_tokens=2)
    assert play(machine, [5, 6, 7]) == [5, 6]
    assert why(machine) == ("max", [])


def test_eos_as_the_last_allowed_id_is_a_stop() -> None:
    machine = progress(max_tokens=2)
    assert play(machine, [5, EOS]) == [5]
    assert why(machine) == ("eos", [EOS])


def test_the_context_ends_it() -> None:
    machine = progress(context=5)
    assert play(machine, [5, 6, 7]) == [5, 6]
    assert why(machine) == ("context", [])
    assert why(progress(max_tokens=0)) == ("max", [])


def test_ignored_eos_is_an_id_like_others_unless_it_is_a_stop_id() -> None:
    machine = progress(ignore_eos=True)
    assert play(machine, [5, EOS, 6]) == [5, EOS, 6]
    machine = progress(ignore_eos=True, stop_ids=TokenIds([EOS]))
    assert play(machine, [5, EOS, 6]) == [5]
    assert why(machine) == ("id", [EOS])


def test_min_tokens_masks_and_does_not_match() -> None:
    machine = progress(min_tokens=2, stop_ids=TokenIds([9]), sequences=(TokenIds([7]),))
    assert machine.masked() == {EOS, 9}
    assert play(machine, [7, 5]) == [7, 5]
    assert machine.masked() == frozenset()
    assert play(machine, [7]) == []
    assert why(machine) == ("sequence", [7])


def test_a_proper_prefix_is_held_back_and_released() -> None:
    machine = progress(sequences=(TokenIds([5, 6, 7]),))
    assert list(machine.push(5)) == []
    assert list(machine.push(6)) == []
    assert list(machine.push(5)) == [5, 6]
    assert list(machine.push(6)) == []
    assert list(machine.push(7)) == []
    assert why(machine) == ("sequence", [5, 6, 7])


def test_what_is_held_back_goes_at_an_end_that_is_no_match() -> None:
    machine = progress(max_tokens=2, sequences=(TokenIds([5, 6, 7]),))
    assert play(machine, [5, 6]) == [5, 6]
    machine = progress(sequences=(TokenIds([5, 6, 7]),))
    assert play(machine, [5, EOS]) == [5]
    assert why(machine) == ("eos", [EOS])
    machine = progress(sequences=(TokenIds([5, 6]),))
    machine.push(5)
    assert list(machine.stop()) == [5]
    machine = progress(sequences=(TokenIds([5, 6]),))
    machine.push(5)
    assert list(machine.cut()) == [5]


def test_the_longest_of_several_matches_wins() -> None:
    machine = progress(sequences=(TokenIds([6]), TokenIds([5, 6])))
    assert play(machine, [4, 5, 6]) == [4]
    assert why(machine) == ("sequence", [5, 6])


def test_resumed_ids_count_and_are_not_sent_again() -> None:
    machine = progress(resume=(5, 6), max_tokens=3)
    assert machine.total == 2
    assert play(machine, [7, 8]) == [7]
    assert why(progress(resume=(5, 6), max_tokens=2)) == ("max", [])


def test_a_budget_of_reasoning_ends_the_choice() -> None:
    thinking = ReasoningBudget(open=True, end_ids=TokenIds([8, 9]), budget=2)
    machine = progress(reasoning=thinking)
    assert play(machine, [5, 6, 7]) == [5, 6]
    assert why(machine) == ("budget", [])
    assert play(progress(reasoning=thinking), [8, 9, 5, 6, 7]) == [8, 9, 5, 6, 7]


def test_a_budget_of_reasoning_forces_ids() -> None:
    thinking = ReasoningBudget(
        start_ids=TokenIds([3, 4]),
        end_ids=TokenIds([9]),
        budget=1,
        on_budget="force",
        force_ids=TokenIds([8, 9]),
    )
    machine = progress(reasoning=thinking, max_tokens=7)
    assert play(machine, [3, 4, 5, 6, 6, 6]) == [3, 4, 5, 8, 9, 6, 6]
    assert why(machine) == ("max", [])


def test_forced_ids_count_towards_max_tokens() -> None:
    thinking = ReasoningBudget(open=True, end_ids=TokenIds([8, 9]), budget=1, on_budget="force")
    machine = progress(reasoning=thinking, max_tokens=2)
    assert play(machine, [5, 6]) == [5, 8]
    assert why(machine) == ("max", [])


def test_a_budget_of_nothing_acts_before_the_first_id() -> None:
    finish = ReasoningBudget(open=True, budget=0)
    assert why(progress(reasoning=finish)) == ("budget", [])
    force = ReasoningBudget(open=True, budget=0, on_budget="force", force_ids=TokenIds([8]))
    assert progress(reasoning=force).forced() == 8


def test_resuming_inside_reasoning_and_inside_forced_ids() -> None:
    thinking = ReasoningBudget(
        open=True, budget=2, on_budget="force", force_ids=TokenIds([8, 9]), end_ids=TokenIds([9])
    )
    assert progress(reasoning=thinking, resume=(5,)).forced() is None
    assert progress(reasoning=thinking, resume=(5, 6)).forced() == 8
    assert progress(reasoning=thinking, resume=(5, 6, 8)).forced() == 9
    assert progress(reasoning=thinking, resume=(5, 6, 8, 9, 5, 5)).forced() is None


IDS = st.lists(st.integers(3, 6), max_size=30)
SEQUENCES = st.lists(st.lists(st.integers(3, 6), min_size=1, max_size=4), max_size=3)


def first_match(ids: list[int], sequences: list[list[int]]) -> tuple[int, int] | None:
    """(start, end) of the match that ends first, the longest of those."""
    for end in range(1, len(ids) + 1):
        for stop in sorted(sequences, key=len, reverse=True):
            if ids[:end][-len(stop) :] == stop:
                return end - len(stop), end
    return None


@given(ids=IDS, sequences=SEQUENCES)
def test_sequences_stop_where_a_search_finds_them(ids, sequences) -> None:
    machine = progress(sequences=tuple(TokenIds(each) for each in sequences))
    sent: list[int] = []
    for id in ids:
        sent.extend(machine.push(id))
        if machine.finish is not None:
            break
    found = first_match(ids, sequences)
    if found is None:
        assert machine.finish is None
        assert ids[: len(sent)] == sent
        held = ids[len(sent) :]
        assert any(stop[: len(held)] == held for stop in sequences) or not held
    else:
        start, end = found
        assert why(machine) == ("sequence", ids[start:end])
        assert sent == ids[:start]


@given(ids=IDS, cut=st.integers(0, 30), sequences=SEQUENCES)
def test_resuming_after_any_delivered_id_gives_the_rest(ids, cut, sequences) -> None:
    stops = tuple(TokenIds(each) for each in sequences)
    whole = progress(sequences=stops, max_tokens=25)
    sent: list[int] = []
    for id in ids:
        if whole.finish is None:
            sent.extend(whole.push(id))
    done = sent[:cut]
    rest = progress(sequences=stops, max_tokens=25, resume=done)
    again: list[int] = []
    for id in ids[len(done) :]:
        if rest.finish is None:
            again.extend(rest.push(id))
    assert done + again == sent
    assert why(rest) == why(whole)


@pytest.mark.parametrize("sequences", [(), (NO_IDS,)])
def test_empty_sequences_stop_nothing(sequences) -> None:
    assert play(progress(sequences=sequences), [5, 6]) == [5, 6]
