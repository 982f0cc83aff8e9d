"""Numbers at the edges of what a job may ask: an id that fits, or a refusal that says why."""

from __future__ import annotations

import math

import pytest

from tests.plugins.engines.cuda.driving import engine, job, run
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Constraint, JobSampling, JobStopping, LogprobSettings
from tokenwire.plugins.tokenizers.bytes.tokenizer import BytesTokenizer

pytestmark = pytest.mark.torch

PROMPT = (5, 6, 7, 8, 9)
SAMPLED = LogprobSettings(top=2, mode="sampled")
EVERY = range(160)


def answer(**fields):
    return run(engine(), job("j", PROMPT, **fields))["j", 0]


@pytest.mark.parametrize("heat", [1e-60, 1e-44, 1e-38, 1e-30, 1e-9])
def test_next_to_no_temperature_is_greedy(heat: float) -> None:
    cold = answer(sampling=JobSampling(temperature=heat), logprobs=SAMPLED)
    assert cold.ids == answer().ids
    assert all(math.isfinite(each.logprob) for each in cold.logprobs)


@pytest.mark.parametrize("heat", [1e30, 1e60])
def test_any_temperature_draws(heat: float) -> None:
    hot = answer(sampling=JobSampling(temperature=heat), logprobs=SAMPLED)
    assert len(set(hot.ids)) > 6
    assert all(each.logprob == pytest.approx(-math.log(160)) for each in hot.logprobs)


@pytest.mark.parametrize("heat", [0.0, 1e-9, 1.0])
@pytest.mark.parametrize("bias", [1e9, 1e300, math.inf])
def test_a_bias_beyond_float32_wins(heat: float, bias: float) -> None:
    sampling = JobSampling(temperature=heat, logit_bias={7: bias})
    found = answer(sampling=sampling, logprobs=SAMPLED)
    assert set(found.ids) == {7}
    assert all(each.logprob == 0 for each in found.logprobs)


@pytest.mark.parametrize("heat", [0.0, 1.0])
def test_where_all_are_biased_away_some_id_comes(heat: float) -> None:
    sampling = JobSampling(temperature=heat, logit_bias=dict.fromkeys(EVERY, -math.inf))
    assert all(
        math.isfinite(each.logprob) for each in answer(sampling=sampling, logprobs=SAMPLED).logprobs
    )


def test_penalties_beyond_float32_win() -> None:
    sampling = JobSampling(repetition_penalty=1e-30, presence_penalty=-1e38)
    found = answer(sampling=sampling, logprobs=SAMPLED)
    assert all(math.isfinite(each.logprob) for each in found.logprobs)
    assert set(found.ids) <= set(PROMPT)


def test_more_ids_than_there_are_are_all() -> None:
    some = answer(sampling=JobSampling(seed=3))
    assert answer(sampling=JobSampling(seed=3, top_k=2**40)).ids == some.ids


def test_where_the_grammar_and_the_allowed_ids_share_none_it_is_cut() -> None:
    tokenizer = BytesTokenizer()
    size = tokenizer.vocabulary.size
    made = engine(tiny_llama(size), tokenizer=tokenizer)
    stuck = job(
        "j",
        PROMPT,
        sampling=JobSampling(allowed_ids=TokenIds([ord("a"), ord("z")])),
        stopping=JobStopping(max_tokens=20),
        constraint=Constraint("regex", "[ab]{3}x"),
    )
    found = run(made, stuck)["j", 0]
    assert bytes(found.ids) == b"aaa"
    assert (found.finish.kind.value, found.finish.cause.value) == ("length", "max")
    assert found.counts.generated == 3


def test_more_choices_than_run_and_wait_are_refused_as_overloaded() -> None:
    made = engine(max_batch_size=1, max_waiting=2)
    found = run(made, job("a", PROMPT, n=2), job("b", PROMPT), job("c", PROMPT), job("d", PROMPT))
    ends = {key: answer.finish.cause.value for key, answer in found.items()}
    served = dict.fromkeys((("a", 0), ("a", 1), ("b", 0)), "max")
    assert ends == served | dict.fromkeys((("c", 0), ("d", 0)), "overloaded")
    assert found["c", 0].finish.retryable
