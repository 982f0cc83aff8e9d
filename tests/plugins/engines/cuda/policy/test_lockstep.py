"""What parts agree on, and that none is ever left waiting: votes alone, and whole groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tokenwire.plugins.engines.cuda.policy.lockstep import (
    Agreement,
    Pace,
    Rules,
    Vote,
    Wake,
    agree,
)

IDLE = Vote(seen=3)
DECODES = Vote(seen=3, is_busy=True, rows=5, tokens=5, may_graph=True, running=5)
PROMPTS = Vote(seen=3, is_busy=True, rows=2, tokens=30, is_decode=False, running=1)
WANTS = replace(DECODES, has_prefill=True)
RULES = Rules(sizes=(1, 2, 4, 8), low=2, patience=3)

votes = st.builds(
    Vote,
    seen=st.integers(0, 3),
    is_busy=st.booleans(),
    rows=st.integers(0, 9),
    tokens=st.integers(0, 20),
    is_decode=st.booleans(),
    may_graph=st.booleans(),
    has_prefill=st.booleans(),
    running=st.integers(0, 4),
    is_stopping=st.booleans(),
)


@given(votes)
def test_a_vote_travels_as_numbers(vote: Vote) -> None:
    assert Vote.of(vote.numbers()) == vote


def test_another_versions_vote_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted 9 numbers, got 3"):
        Vote.of([1, 2, 3])


def test_nobody_cannot_agree() -> None:
    with pytest.raises(ValueError, match="the vote of every part"):
        agree([], RULES)


@given(st.lists(votes, min_size=1, max_size=5), st.integers(0, 4), st.randoms())
def test_the_order_of_parts_does_not_matter(found, waited: int, random) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert agree(shuffled, RULES, waited) == agree(found, RULES, waited)


@pytest.mark.parametrize(
    ("found", "goes", "span"),
    [
        ([IDLE, IDLE], False, 0),
        ([IDLE, PROMPTS], True, 30),
        ([DECODES, PROMPTS], True, 30),
        # An idle part that can pad pads with them; one that cannot keeps all from it.
        ([replace(IDLE, may_graph=True), DECODES], True, 8),
        ([IDLE, DECODES], True, 5),
        ([replace(DECODES, tokens=9)], True, 9),
        ([replace(PROMPTS, may_graph=True, tokens=6), DECODES], True, 6),
    ],
)
def test_whether_and_how_wide_a_pass_is(found, goes: bool, span: int) -> None:
    agreed = agree(found, RULES)
    assert (agreed.goes, agreed.span) == (goes, span)


@pytest.mark.parametrize(
    ("found", "is_over"),
    [
        ([IDLE, IDLE], True),
        ([IDLE, DECODES], False),
        ([IDLE, replace(IDLE, is_busy=True)], False),
        ([IDLE, replace(IDLE, seen=4)], False),
        ([IDLE, replace(IDLE, is_stopping=True)], False),
    ],
)
def test_when_a_wave_is_over(found, is_over: bool) -> None:
    assert agree(found, RULES).is_over == is_over


def test_one_that_stops_stops_all_before_another_pass() -> None:
    agreed = agree([DECODES, replace(IDLE, is_stopping=True)], RULES)
    assert agreed.stops
    assert not agreed.goes


@pytest.mark.parametrize(
    ("found", "allowed"),
    [
        # All busy parts have prompts.
        ([WANTS, WANTS, IDLE], True),
        ([WANTS, DECODES], False),
        # One that has them has little else to do.
        ([replace(WANTS, running=1), DECODES], True),
        ([WANTS, replace(DECODES, running=1)], False),
        # Nobody has any: the next to come begins at once where it would be allowed to.
        ([IDLE, replace(DECODES, running=1)], True),
        ([IDLE, DECODES], False),
    ],
)
def test_prompts_are_held_back(found, allowed: bool) -> None:
    assert agree(found, RULES).prefill_next == allowed


def test_a_part_alone_holds_nothing_back() -> None:
    assert agree([DECODES], RULES).prefill_next
    assert agree([WANTS], RULES).prefill_next


def test_prompts_are_held_back_for_so_many_steps_and_no_more() -> None:
    pace = Pace(RULES)
    seen = [pace.settle([WANTS, DECODES]).prefill_next for _ in range(9)]
    assert seen == [False, False, False, True] * 2 + [False]


def test_nobody_waits_before_anything_was_agreed() -> None:
    pace = Pace(RULES)
    assert pace.agreed.prefill_next
    assert pace.is_resting
    pace.hear(1)
    assert not pace.is_resting


# --- whole groups ---------------------------------------------------------------------------------

BUDGET = 2
"""Prompt chunks of one part in one step."""


class Part:
    """Jobs are [chunks of prompt left, ids left]. `lags`: what a pass brings is known one turn
    later, as where steps overlap, and the job has no row before."""

    def __init__(self, rules: Rules, lags: bool) -> None:
        self.pace = Pace(rules)
        self.lags = lags
        self.inbox: deque[Wake | list[int]] = deque()
        self.jobs: list[list[int]] = []
        self.flying: list[list[list[int]]] = []
        self.vote: Vote | None = None
        self.plan: list[list[int]] = []
        self.passes = 0
        self.held_back = 0
        self.is_stopping = False
        self.has_left = False

    @property
    def is_asleep(self) -> bool:
        return self.pace.is_resting and not self.jobs and not self.is_stopping

    def turn(self) -> None:
        """Up to its vote, unless it sleeps or waits for the others'."""
        if self.has_left or self.vote is not None:
            return
        while self.inbox:
            match self.inbox.popleft():
                case Wake(number):
                    self.pace.hear(number)
                case job:
                    self.jobs.append(job)
        if self.is_asleep:
            return
        flown = [job for step in self.flying for job in step]
        free = [job for job in self.jobs if not any(job is other for other in flown)]
        prompts = [job for job in free if job[0]]
        decodes = [job for job in free if not job[0]]
        taken = prompts[:BUDGET] if self.pace.agreed.prefill_next else []
        self.held_back = self.held_back + 1 if prompts and not taken else 0
        self.plan = [*decodes, *taken]
        self.vote = Vote(
            seen=self.pace.seen,
            is_busy=bool(self.jobs),
            rows=len(self.plan),
            tokens=len(decodes) + 3 * len(taken),
            is_decode=not taken,
            has_prefill=len(prompts) > len(taken) or any(job[0] > 1 for job in taken),
            running=len(decodes),
            is_stopping=self.is_stopping,
        )

    def settle(self, found: Sequence[Vote]) -> Agreement:
        agreed = self.pace.settle(found)
        self.vote = None
        if agreed.goes:
            self.passes += 1
            self.flying.append(self.plan)
        while len(self.flying) > (self.lags and agreed.goes):
            for job in self.flying.pop(0):
                job[0 if job[0] else 1] -= 1
        self.jobs = [job for job in self.jobs if any(job)]
        self.has_left = agreed.stops
        return agreed


class Group:
    def __init__(self, rules: Rules, lags: Sequence[bool]) -> None:
        self.rules = rules
        self.parts = [Part(rules, lag) for lag in lags]
        self.links: list[deque[Wake | list[int]]] = [deque() for _ in lags]
        """What is on its way to each part, in order."""
        self.wave = 0
        self.turns = 0

    def submit(self, to: int, job: list[int]) -> None:
        self.wave += 1
        for index, link in enumerate(self.links):
            if index == to:
                link.append(job)
            link.append(Wake(self.wave))

    def deliver(self, to: int) -> None:
        if self.links[to]:
            self.parts[to].inbox.append(self.links[to].popleft())

    def settle(self) -> bool:
        """Where all have voted: one agreement, the same on all."""
        found = [part.vote for part in self.parts if part.vote is not None]
        if len(found) < len(self.parts):
            return False
        first, *others = [part.settle(found) for part in self.parts]
        assert all(other == first for other in others)
        self.turns += 1
        self.check()
        return True

    def check(self) -> None:
        assert len({part.passes for part in self.parts}) == 1
        for part in self.parts:
            assert part.held_back <= self.rules.patience + 2

    def land(self, most: int = 2000) -> None:
        """Everything arrives, and everybody goes on for as long as he can."""
        for _ in range(most):
            for index in range(len(self.parts)):
                while self.links[index]:
                    self.deliver(index)
                self.parts[index].turn()
            if not self.settle():
                return
        raise AssertionError("the wave does not end")


actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("submit"), st.integers(0, 7), st.tuples(st.integers(1, 5), st.integers(1, 15))
        ),
        st.tuples(st.just("deliver"), st.integers(0, 7), st.none()),
        st.tuples(st.just("turn"), st.integers(0, 7), st.none()),
        st.tuples(st.just("rest"), st.none(), st.none()),
    ),
    max_size=60,
)
rules_ = st.builds(
    Rules, sizes=st.just((1, 2, 4, 8)), low=st.integers(1, 3), patience=st.integers(0, 6)
)
groups = st.builds(Group, rules_, st.lists(st.booleans(), min_size=1, max_size=5))


def play(group: Group, found) -> None:
    size = len(group.parts)
    for action, at, job in found:
        match action:
            case "submit":
                group.submit(at % size, list(job))
            case "deliver":
                group.deliver(at % size)
            case "turn":
                group.parts[at % size].turn()
                group.settle()
            case _:
                group.land()


@settings(max_examples=150, deadline=None)
@given(groups, actions)
def test_every_job_ends_and_all_sleep(group: Group, found) -> None:
    """However jobs, words of them and turns fall: nobody waits for a vote that never comes, all
    make the same passes, and when nothing is left to do all sleep."""
    play(group, found)
    group.land()
    assert all(part.is_asleep for part in group.parts)
    assert not any(part.jobs or part.flying or part.inbox for part in group.parts)
    assert {part.pace.seen for part in group.parts} == {group.wave}
    assert group.parts[0].pace.agreed.is_over


@settings(max_examples=60, deadline=None)
@given(groups, actions)
def test_all_stop_in_the_same_step(group: Group, found) -> None:
    play(group, found)
    before = group.parts[0].passes
    for part in group.parts:
        part.is_stopping = True
    group.land()
    assert all(part.has_left for part in group.parts)
    assert group.parts[0].passes <= before + 1


def test_a_part_without_jobs_makes_the_passes_of_the_others() -> None:
    group = Group(RULES, [False, False, False])
    group.submit(1, [2, 5])
    group.land()
    assert [part.passes for part in group.parts] == [7, 7, 7]


def test_a_job_on_its_way_keeps_the_others_awake() -> None:
    group = Group(RULES, [False, False])
    group.submit(0, [1, 1])
    group.deliver(1)
    for _ in range(3):
        group.parts[1].turn()
        assert not group.settle()
    assert not group.parts[1].is_asleep
    group.land()
    assert group.parts[0].passes == group.parts[1].passes == 2
