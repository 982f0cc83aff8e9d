"""A kept answer: the same tokens in fewer deltas, honest counts, no half answers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.core.answer_record import JOIN, condense, pack, relabel, unpack
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Counts,
    Finish,
    FinishCause,
    FinishKind,
    Handoff,
    IdLogprobs,
    TokenDelta,
)

STOP = Finish(FinishKind.STOP, FinishCause.EOS, matched=TokenIds([2]))
ENDS = st.sampled_from(
    (
        STOP,
        Finish(FinishKind.STOP, FinishCause.SEQUENCE),
        Finish(FinishKind.LENGTH, FinishCause.MAX),
        Finish(FinishKind.ABORT, FinishCause.STOP_TEXT),
    )
)


@st.composite
def choices_of(draw, choice, with_logprobs):
    """One choice's deltas, as an engine sends them."""
    deltas, at = [], 0
    for size in draw(st.lists(st.integers(1, 200), max_size=6)):
        ids = TokenIds(range(at, at + size))
        logprobs = tuple(IdLogprobs(id_, -0.5, 1, ((id_, -0.5),)) for id_ in ids)
        deltas.append(
            TokenDelta(
                "j",
                at,
                choice=choice,
                ids=ids,
                logprobs=logprobs if with_logprobs else (),
                forced=draw(st.booleans()),
            )
        )
        at += size
    end = TokenDelta("j", at, choice=choice, finish=draw(ENDS))
    if deltas and draw(st.booleans()):
        end = replace(deltas.pop(), finish=end.finish)
    deltas.append(replace(end, counts=Counts(prompt=11, computed=11, generated=at)))
    deltas[0] = replace(deltas[0], counts=deltas[0].counts or Counts(prompt=11, computed=11))
    return deltas


@st.composite
def answers(draw):
    """The deltas of all choices, interleaved in any way that keeps each choice's order."""
    n = draw(st.integers(1, 3))
    with_logprobs = draw(st.booleans())
    queues = [draw(choices_of(choice, with_logprobs)) for choice in range(n)]
    deltas = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        deltas.append(queue.pop(0))
    return n, deltas


def tokens(deltas, choice):
    """(id, forced, its log probability) of each, checking that none is missing."""
    held = []
    for delta in deltas:
        if delta.choice == choice:
            assert delta.at == len(held)
            logprobs = delta.logprobs or (None,) * len(delta.ids)
            assert len(logprobs) == len(delta.ids)
            held += [(id_, delta.forced, one) for id_, one in zip(delta.ids, logprobs, strict=True)]
    return held


def last(deltas, choice):
    return [delta for delta in deltas if delta.choice == choice][-1]


@given(answers())
def test_the_kept_answer_says_the_same_in_fewer_deltas(case):
    n, deltas = case
    kept = condense(deltas, n)
    assert kept is not None
    assert unpack(pack(kept)) == kept
    assert len(kept) <= len(deltas)
    for choice in range(n):
        assert tokens(kept, choice) == tokens(deltas, choice)
        end = last(kept, choice)
        assert end.finish == last(deltas, choice).finish
        generated = len(tokens(deltas, choice))
        assert end.counts == Counts(prompt=11, cached=11, computed=0, generated=generated)
        assert next(delta for delta in kept if delta.choice == choice).counts is not None
    assert all(len(delta.ids) <= max(JOIN, 200) for delta in kept)
    assert {(delta.job, delta.attempt) for delta in kept} == {("", 0)}


@given(answers(), st.data())
def test_half_an_answer_is_none(case, data):
    n, deltas = case
    without = data.draw(st.integers(0, len(deltas) - 1))
    lost = deltas[without]
    rest = deltas[:without] + deltas[without + 1 :]
    if lost.ids or lost.finish is not None:
        assert condense(rest, n) is None
    assert condense(deltas, n + 1) is None
    assert condense([*deltas, replace(last(deltas, 0), finish=STOP)], n) is None


@pytest.mark.parametrize(
    "finish",
    [
        Finish(FinishKind.ABORT, FinishCause.CLIENT),
        Finish(FinishKind.ABORT, FinishCause.DEADLINE),
        Finish(FinishKind.ABORT, FinishCause.PREEMPTED),
        Finish(FinishKind.ERROR, FinishCause.LOST),
        Finish(FinishKind("later"), FinishCause("later")),
    ],
)
def test_a_bad_end_of_one_choice_spoils_the_answer(finish):
    good = TokenDelta("j", 0, ids=TokenIds([1]), finish=STOP)
    bad = TokenDelta("j", 0, choice=1, ids=TokenIds([1]), finish=finish)
    assert condense([good], 1) is not None
    assert condense([good, bad], 2) is None


def test_prompt_logprobs_stay_and_handed_over_answers_do_not():
    given_ = (None, IdLogprobs(1, -1.0))
    first = TokenDelta("j", 0, ids=TokenIds([1]), prompt_logprobs=given_)
    end = TokenDelta("j", 1, finish=STOP)
    (kept,) = condense([first, end], 1)
    assert kept.prompt_logprobs == given_
    assert condense([replace(first, handoff=Handoff("r")), end], 1) is None


def test_choices_are_played_side_by_side():
    deltas = []
    for choice in (0, 1):
        for start in range(0, 600, 100):
            ids = TokenIds([choice] * 100)
            deltas.append(TokenDelta("j", start, choice=choice, ids=ids))
        deltas.append(TokenDelta("j", 600, choice=choice, finish=STOP))
    kept = condense(deltas, 2)
    assert [(delta.at, delta.choice) for delta in kept] == [
        (at, choice) for at in (0, 200, 400) for choice in (0, 1)
    ]


def test_another_versions_record_is_a_miss():
    kept = condense([TokenDelta("j", 0, finish=STOP)], 1)
    record = msgspec.msgpack.decode(pack(kept))
    assert unpack(msgspec.msgpack.encode(record | {"version": 2})) is None
    assert unpack(msgspec.msgpack.encode(record | {"later": 1})) == kept


@given(st.binary(max_size=40))
def test_any_bytes_are_an_answer_or_a_miss(data):
    assert unpack(data) is None or isinstance(unpack(data), tuple)


def test_relabelling_changes_nothing_else():
    kept = condense([TokenDelta("j", 0, ids=TokenIds([4]), finish=STOP)], 1)
    (delta,) = relabel(kept, "new", attempt=2)
    assert replace(delta, job="", attempt=0) == kept[0]
    assert (delta.job, delta.attempt) == ("new", 2)
