"""The sampling functions against distributions made by hand."""

from __future__ import annotations

import math

import pytest

from tokenwire.core.seeds import splitmix64
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
sampling = pytest.importorskip("tokenwire.plugins.engines.reference.sampling")

NEVER = float("-inf")


def logits_of(*probabilities: float):
    return torch.tensor(probabilities).log()


def probabilities_of(logprobs) -> list[float]:
    return [round(float(each), 4) for each in logprobs.exp()]


def test_temperature() -> None:
    logits = logits_of(0.5, 0.25, 0.25)
    halved = probabilities_of(sampling.filtered(logits, JobSampling(temperature=0.5)))
    assert halved == [0.6667, 0.1667, 0.1667]
    assert probabilities_of(sampling.filtered(logits, JobSampling())) == [0.5, 0.25, 0.25]


def test_top_k() -> None:
    kept = sampling.filtered(logits_of(0.4, 0.3, 0.2, 0.1), JobSampling(top_k=2))
    assert probabilities_of(kept) == [0.5714, 0.4286, 0.0, 0.0]
    assert probabilities_of(sampling.filtered(logits_of(0.6, 0.4), JobSampling(top_k=9))) == [
        0.6,
        0.4,
    ]


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.0, 1), (0.39, 1), (0.41, 2), (0.69, 2), (0.71, 3), (0.95, 4), (1.0, 4)],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, kept: int) -> None:
    logprobs = sampling.filtered(logits_of(0.1, 0.4, 0.2, 0.3), JobSampling(top_p=top_p))
    assert int((logprobs > NEVER).sum()) == kept
    assert int(logprobs.argmax()) == 1


def test_min_p() -> None:
    kept = sampling.filtered(logits_of(0.5, 0.3, 0.15, 0.05), JobSampling(min_p=0.5))
    assert probabilities_of(kept) == [0.625, 0.375, 0.0, 0.0]


def test_filters_act_one_after_the_other() -> None:
    both = JobSampling(top_k=2, top_p=0.55)
    kept = sampling.filtered(logits_of(0.4, 0.3, 0.2, 0.1), both)
    # 0.4 of 0.7 is 0.57: after top_k alone it reaches 0.55.
    assert probabilities_of(kept) == [1.0, 0.0, 0.0, 0.0]


def test_bias_allowed_and_masked_ids() -> None:
    logits = torch.tensor([1.0, 2.0, 3.0, 4.0])
    biased = sampling.permitted(logits, JobSampling(logit_bias={0: 5.0, 99: 1.0}), ())
    assert biased.tolist() == [6.0, 2.0, 3.0, 4.0]
    allowed = JobSampling(allowed_ids=TokenIds([1, 2, 99]))
    assert sampling.permitted(logits, allowed, ()).tolist() == [NEVER, 2.0, 3.0, NEVER]
    assert sampling.permitted(logits, allowed, (2,)).tolist() == [NEVER, 2.0, NEVER, NEVER]
    # Nothing would be left: the mask gives way.
    assert sampling.permitted(logits, allowed, (1, 2)).tolist() == [NEVER, 2.0, 3.0, NEVER]
    assert logits.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_penalties() -> None:
    logits = torch.tensor([2.0, -2.0, 1.0, 1.0])
    repeated = sampling.penalised(
        logits, JobSampling(repetition_penalty=2.0), prompt=[0], output=[1]
    )
    assert repeated.tolist() == [1.0, -4.0, 1.0, 1.0]
    counted = JobSampling(frequency_penalty=0.5, presence_penalty=0.25)
    result = sampling.penalised(logits, counted, prompt=[0, 0], output=[2, 2, 3])
    assert result.tolist() == [2.0, -2.0, -0.25, 0.25]
    assert sampling.penalised(logits, counted, prompt=[0], output=[]).tolist() == logits.tolist()


def test_greedy_takes_the_likeliest() -> None:
    greedy = JobSampling(temperature=0.0, top_p=0.1, top_k=1)
    assert sampling.choose(torch.tensor([0.0, 3.0, 1.0]), greedy, seed=1, position=0) == 1


def test_scores() -> None:
    logprobs = logits_of(0.1, 0.4, 0.2, 0.3)
    value, rank, top = sampling.scored(logprobs, 2, 2)
    assert math.isclose(math.exp(value), 0.2, rel_tol=1e-5)
    assert rank == 3
    assert [id for id, _ in top] == [1, 3]
    assert sampling.scored(logprobs, 1, 0)[1:] == (1, [])
    assert len(sampling.scored(logprobs, 1, 99)[2]) == 4


def test_noise_is_what_its_definition_says() -> None:
    seed, position, size = -5, 7, 40
    mask = (1 << 64) - 1
    key = splitmix64((seed + splitmix64(position)) & mask)
    wanted = []
    for id in range(size):
        uniform = ((splitmix64((key + id) & mask) >> 11) + 0.5) * 2.0**-53
        wanted.append(-math.log(-math.log(uniform)))
    found = sampling.gumbel(seed, position, size).tolist()
    assert all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(found, wanted, strict=True))


def test_noise_depends_on_seed_position_and_id() -> None:
    base = sampling.gumbel(1, 1, 100)
    assert not torch.equal(base, sampling.gumbel(2, 1, 100))
    assert not torch.equal(base, sampling.gumbel(1, 2, 100))
    assert len(set(base.tolist())) == 100
    assert torch.equal(base[:50], sampling.gumbel(1, 1, 50))


def test_draws_follow_the_distribution() -> None:
    logits, count = logits_of(0.6, 0.3, 0.1), 4000
    drawn = [0, 0, 0]
    for position in range(count):
        drawn[sampling.choose(logits, JobSampling(), seed=3, position=position)] += 1
    for share, wanted in zip(drawn, (0.6, 0.3, 0.1), strict=True):
        # Four standard deviations of a binomial.
        assert abs(share / count - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / count)
