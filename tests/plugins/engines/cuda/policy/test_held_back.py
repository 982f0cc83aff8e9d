"""Steps that may hold no prompt: who decodes goes on, all others wait, and lose nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugins.engines.cuda.policy.rig import Rig, answer
from tokenwire.plugins.engines.cuda.policy.plan import Plan
from tokenwire.plugins.engines.cuda.policy.sequence import State


def step(rig: Rig, prefills: bool) -> Plan:
    plan = rig.scheduler.schedule(0.0, prefills)
    rig.flight.append(plan)
    while len(rig.flight) > rig.depth:
        rig.retire()
    return plan


def test_prompts_that_run_and_those_that_wait_are_held_back() -> None:
    rig = Rig(max_batch_tokens=8)
    decodes = rig.add(4)
    step(rig, True)
    runs = rig.add([50] * 20)
    step(rig, True)
    waits = rig.add([60] * 4)
    before = runs.computed
    assert rig.scheduler.has_prefill
    assert rig.scheduler.decoding == 1
    for _ in range(3):
        assert [row.seq for row in step(rig, False).rows] == [decodes]
    assert runs.computed == before
    assert waits.state is State.WAITING
    assert {row.seq for row in step(rig, True).rows} == {decodes, runs}


def test_a_step_without_prompts_may_be_empty() -> None:
    rig = Rig()
    rig.add(4)
    assert not step(rig, False).has_effect
    assert rig.scheduler.has_prefill
    assert step(rig, True).rows
    assert not rig.scheduler.has_prefill


def test_those_that_wait_for_a_place_do_not_count() -> None:
    rig = Rig(max_batch_size=1)
    rig.add(4)
    step(rig, True)
    rig.add([9, 9])
    assert not rig.scheduler.has_prefill


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=8),
    st.lists(st.booleans(), max_size=60),
    st.integers(0, 1),
    st.integers(14, 60),
    st.integers(3, 16),
)
def test_whenever_prompts_are_held_back_the_ids_are_the_same(
    jobs, switches, depth: int, blocks: int, budget: int
) -> None:
    rig = Rig(blocks, depth=depth, max_batch_tokens=budget, max_batch_size=3, max_model_len=48)
    known = [rig.add(range(at, at + length), out) for at, (length, out) in enumerate(jobs)]
    for prefills in switches:
        plan = step(rig, prefills)
        if not prefills:
            assert plan.decode_rows == len(plan.rows)
    rig.run()
    for at, (length, out) in enumerate(jobs):
        prompt = list(range(at, at + length))
        assert list(known[at].tokens) == prompt + answer(prompt, out)
