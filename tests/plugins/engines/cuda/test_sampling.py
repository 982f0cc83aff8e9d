"""What is drawn, and what is told of it: the reference engine's, whoever shares the batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import share
from tests.plugins.engines.cuda.driving import Answer, engine, job, run, waves
from tests.plugins.engines.reference.tiny import VOCABULARY, tiny_llama
from tokenwire.core.host import lone_services
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import (
    Constraint,
    JobSampling,
    JobStopping,
    LogprobSettings,
    ReasoningBudget,
    TokenJob,
)

pytestmark = pytest.mark.torch

IDS = st.integers(2, VOCABULARY - 1)
PROMPTS = st.lists(IDS, min_size=1, max_size=30)
SAMPLINGS = st.builds(
    JobSampling,
    temperature=st.sampled_from([0.0, 0.5, 1.0, 1.7]),
    top_p=st.sampled_from([1.0, 0.9, 0.3]),
    top_k=st.sampled_from([0, 1, 5, 50]),
    min_p=st.sampled_from([0.0, 0.05]),
    frequency_penalty=st.sampled_from([0.0, 0.7]),
    presence_penalty=st.sampled_from([0.0, -0.5]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    seed=st.integers(-(2**63), 2**63 - 1),
    logit_bias=st.dictionaries(IDS, st.floats(-8, 8, width=16), max_size=3),
    allowed_ids=st.lists(IDS, max_size=12).map(TokenIds),
)
STOPPINGS = st.builds(
    JobStopping,
    max_tokens=st.integers(1, 10),
    min_tokens=st.sampled_from([0, 3]),
    stop_ids=st.lists(IDS, max_size=6).map(TokenIds),
    sequences=st.lists(st.lists(IDS, min_size=1, max_size=2).map(TokenIds), max_size=2).map(tuple),
    ignore_eos=st.booleans(),
)
LOGPROBS = st.none() | st.builds(
    LogprobSettings,
    top=st.sampled_from([0, 1, 4]),
    ids=st.lists(IDS, max_size=2).map(TokenIds),
    prompt=st.sampled_from([None, 0, 2]),
    mode=st.sampled_from(["raw", "sampled"]),
)
BUDGETS = st.none() | st.builds(
    ReasoningBudget,
    open=st.just(True),
    end_ids=st.just(TokenIds([7, 8])),
    budget=st.integers(0, 4),
    on_budget=st.sampled_from(["force", "finish"]),
)


def jobs(index: int) -> st.SearchStrategy[TokenJob]:
    return st.builds(
        lambda prompt, **fields: job(f"j{index}", prompt, **fields),
        PROMPTS,
        sampling=SAMPLINGS,
        stopping=STOPPINGS,
        logprobs=LOGPROBS,
        reasoning=BUDGETS,
        n=st.sampled_from([1, 1, 2]),
    )


def reference(*asked: TokenJob) -> dict[tuple[str, int], Answer]:
    from tokenwire.plugins.engines.reference.build import build
    from tokenwire.plugins.engines.reference.settings import ReferenceSettings

    settings = ReferenceSettings(path=str(tiny_llama()), device="cpu")
    return run(build(settings, lone_services()), *asked)


def same(ours: dict[tuple[str, int], Answer], theirs: dict[tuple[str, int], Answer]) -> None:
    assert ours.keys() == theirs.keys()
    for key, answer in theirs.items():
        assert ours[key].ids == answer.ids, key
        assert ours[key].finish == answer.finish, key
        assert ours[key].counts.generated == answer.counts.generated
        equal_entries(ours[key].logprobs, answer.logprobs)
        equal_entries(ours[key].deltas[0].prompt_logprobs, answer.deltas[0].prompt_logprobs)


def equal_entries(ours: Any, theirs: Any) -> None:
    assert (ours is None) == (theirs is None)
    for mine, other in zip(ours or (), theirs or (), strict=True):
        assert (mine is None) == (other is None)
        if mine is None:
            continue
        assert (mine.id, mine.rank) == (other.id, other.rank)
        assert mine.logprob == pytest.approx(other.logprob, abs=1e-4)
        assert dict(mine.top) == pytest.approx(dict(other.top), abs=1e-4)


@given(asked=st.tuples(*(jobs(index) for index in range(5))))
@share(25)
def test_every_draw_is_the_reference_engines(asked: tuple[TokenJob, ...]) -> None:
    """All at once here, with small chunks and small batches; one after another there."""
    ours = run(engine(long_prefill_tokens=7, max_batch_size=3), *asked)
    same(ours, reference(*asked))


def test_a_seed_gives_the_same_ids_in_any_company() -> None:
    mine = job("mine", [5, 17, 99], sampling=JobSampling(temperature=1.2, seed=11))
    others = [
        job(f"other{index}", [index + 2] * (index + 1), sampling=JobSampling(seed=index))
        for index in range(7)
    ]
    alone = run(engine(), mine)["mine", 0].ids
    assert run(engine(), *others, mine)["mine", 0].ids == alone
    late = waves(engine(max_batch_tokens=8), [others[3]], [*others, mine])
    assert late["mine", 0].ids == alone
    reseeded = job("mine", [5, 17, 99], sampling=JobSampling(temperature=1.2, seed=12))
    assert run(engine(), reseeded)["mine", 0].ids != alone


def test_prompt_scores_do_not_come_from_the_cache() -> None:
    """A prompt that is in the cache is computed again where its scores are wanted."""
    prompt = [5, 17, 99, 42, 42, 7, 11, 12, 13]
    asked = job("scored", prompt, logprobs=LogprobSettings(prompt=2))
    found = waves(engine(), [job("first", prompt)], [asked])
    assert found["scored", 0].counts.cached == 0
    equal_entries(
        found["scored", 0].deltas[0].prompt_logprobs,
        reference(asked)["scored", 0].deltas[0].prompt_logprobs,
    )


def test_drafts_change_nothing_but_the_number_of_steps() -> None:
    """A greedy answer of a tiny model falls into a circle: drafts are taken, and steps saved."""
    asked = [
        job("greedy", [5, 17, 99, 5, 17], max_tokens=120),
        job("seeded", [9, 9, 9], max_tokens=60, sampling=JobSampling(temperature=0.3, seed=2)),
        job("scored", [5, 17, 99], max_tokens=60, logprobs=LogprobSettings(top=2)),
    ]
    plain, drafted = engine(), engine(speculation={"tokens": 4, "longest": 3, "shortest": 1})
    same(run(drafted, *asked), run(plain, *asked))
    steps = [made._worker._scheduler.schedule(0.0).step for made in (plain, drafted)]
    assert steps[1] < steps[0]


def test_a_constraint_that_is_not_declared_is_refused() -> None:
    held = job("held", [5], constraint=Constraint("regex", "a"))
    assert "grammar:regex" in run(engine(), held)["held", 0].finish.message
