"""What a choice may send: order, counts, credit, and nothing twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokenwire.core.outlet import Allowance, Outlet, refusals
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Counts, Finish, FinishCause, FinishKind, IdLogprobs, TokenJob

END = Finish(FinishKind.LENGTH, FinishCause.MAX)


def outlet(credit: int | None = None, resume: tuple[int, ...] = (), cap: int = 4) -> Outlet:
    job = TokenJob(job="j", model="m", prompt=TokenIds([1, 2]), resume_ids=TokenIds(resume))
    return Outlet(job, 0, Allowance(credit), cap)


def test_counts_stand_on_the_first_and_last_delta() -> None:
    out = outlet(resume=(9,))
    out.counts = Counts(prompt=2, cached=1, computed=1)
    (first,) = out.put(TokenIds([5]))
    (second,) = out.put(TokenIds([6]))
    (last,) = out.put(TokenIds([7]), finish=END)
    assert [each.at for each in (first, second, last)] == [1, 2, 3]
    assert first.counts == Counts(2, 1, 1, 2)
    assert second.counts is None
    assert last.counts == Counts(2, 1, 1, 4)
    assert out.is_over


def test_nothing_to_say_is_no_delta() -> None:
    assert outlet().put(TokenIds()) == []


def test_a_finish_needs_no_credit_but_waits_for_its_ids() -> None:
    out = outlet(credit=0)
    assert out.put(TokenIds([5]), finish=END) == []
    assert not out.is_over
    out._allowance.add(1)
    (delta,) = out.flush()
    assert (list(delta.ids), delta.finish) == ([5], END)
    bare = outlet(credit=0)
    assert [delta.finish for delta in bare.put(TokenIds(), finish=END)] == [END]


def test_forced_ids_keep_their_flag_and_logprobs_their_ids() -> None:
    out = outlet(credit=0)
    scores = [IdLogprobs(id, -1.0) for id in (5, 6, 7)]
    out.put(TokenIds([5]), logprobs=scores[:1])
    out.put(TokenIds([6, 7]), is_forced=True, logprobs=scores[1:])
    out._allowance.add(9)
    deltas = out.flush()
    assert [(list(each.ids), each.forced) for each in deltas] == [([5], False), ([6, 7], True)]
    assert [entry.id for each in deltas for entry in each.logprobs] == [5, 6, 7]


def test_the_cap_blocks() -> None:
    out = outlet(credit=0, cap=2)
    out.put(TokenIds([5]))
    assert not out.is_blocked
    out.put(TokenIds([6]))
    assert out.is_blocked
    assert out.made == 2
    out._allowance.add(1)
    out.flush()
    assert not out.is_blocked


def test_breaking_off_drops_what_was_kept_and_happens_once() -> None:
    out = outlet(credit=1)
    out.put(TokenIds([5, 6, 7]))
    (delta,) = out.end(END)
    assert (delta.at, list(delta.ids), delta.counts) == (1, [], Counts(prompt=2, generated=1))
    assert out.end(END) == []
    assert out.flush() == []


def test_a_refused_job_gets_one_finish_a_choice() -> None:
    job = TokenJob(job="j", model="m", prompt=TokenIds([1]), n=3, resume_ids=TokenIds([4, 4]))
    deltas = refusals(job, END)
    assert [(each.choice, each.at) for each in deltas] == [(0, 2), (1, 2), (2, 2)]
    assert len(refusals(TokenJob(job="j", model="m", prompt=TokenIds([1]), n=-1), END)) == 1


@given(
    steps=st.lists(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=3))),
    credit=st.integers(0, 3),
)
def test_credit_is_never_overdrawn_and_nothing_is_lost(steps, credit) -> None:
    """A number grants credit, a list puts ids."""
    allowance = Allowance(credit)
    job = TokenJob(job="j", model="m", prompt=TokenIds([1]))
    out, granted, put, sent = Outlet(job, 0, allowance, 100), credit, [], []
    for step in steps:
        if isinstance(step, int):
            allowance.add(step)
            granted += step
            deltas = out.flush()
        else:
            put += step
            deltas = out.put(TokenIds(step))
        for delta in deltas:
            assert delta.at == len(sent)
            sent += delta.ids
        assert sent == put[: min(granted, len(put))]


def test_credit_below_nothing_is_nothing() -> None:
    behind = outlet(credit=-5)
    assert behind.put(TokenIds([1])) == []
    assert behind.flush() == []
