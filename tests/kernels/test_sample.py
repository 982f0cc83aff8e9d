"""Sampling: every implementation draws the ids of the reference engine, whatever shares a batch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.tokens import JobSampling

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
op = pytest.importorskip("tokenwire.kernels.sample").OPS[0]
Signature = pytest.importorskip("tokenwire.kernels.op").Signature
engine = pytest.importorskip("tokenwire.plugins.engines.reference.sampling")

NAMES = ["reference", "cpu", "cpu_native"]
NEVER = float("-inf")
VOCABULARY = 700
rows = st.builds(
    JobSampling,
    temperature=st.sampled_from([0.0, 0.01, 0.7, 1.0, 2.5]),
    top_k=st.sampled_from([0, 1, 2, 40, VOCABULARY - 1, VOCABULARY, 2 * VOCABULARY]),
    top_p=st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.999, 0.999999, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
)
logit_rows = st.tuples(
    st.integers(0, 1 << 30), st.sampled_from([0.0, 0.2, 3.0, 20.0]), st.sampled_from([0, 1, 690])
)


def logits_of(seed: int, spread: float, masked: int):
    """Of a normal law; rounded, so that ids tie; some of them impossible."""
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(VOCABULARY, generator=generator) * spread * 4).round() / 4
    logits[torch.randperm(VOCABULARY, generator=generator)[:masked]] = NEVER
    return logits


def drawn(name: str, logits, samplings, seeds, positions) -> list[int]:
    one = op.implementation(name)
    if reason := one.supports(Signature()):
        pytest.skip(reason)
    function = one.load()
    ids = function(
        logits,
        torch.tensor([each.temperature for each in samplings]),
        torch.tensor([each.top_k for each in samplings], dtype=torch.int32),
        torch.tensor([each.top_p for each in samplings]),
        torch.tensor([each.min_p for each in samplings]),
        torch.tensor(seeds),
        torch.tensor(positions),
    )
    assert ids.dtype == torch.int64
    return ids.tolist()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(rows, logit_rows, st.integers(-(2**63), 2**63 - 1), st.integers(0, 1 << 40)),
        min_size=1,
        max_size=5,
    )
)
def test_ids_are_those_of_the_reference_engine(name: str, batch) -> None:
    samplings, drafts, seeds, positions = zip(*batch, strict=True)
    logits = torch.stack([logits_of(*draft) for draft in drafts])
    expected = [
        engine.choose(row, sampling, seed=seed, position=position)
        for row, sampling, seed, position in zip(logits, samplings, seeds, positions, strict=True)
    ]
    assert drawn(name, logits, samplings, seeds, positions) == expected
    order = list(reversed(range(len(batch))))
    others = drawn(
        name,
        logits[order],
        [samplings[i] for i in order],
        [seeds[i] for i in order],
        [positions[i] for i in order],
    )
    assert others == [expected[i] for i in order]


@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_probabilities(name: str) -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(4000, 3).contiguous()
    ids = drawn(name, logits, [JobSampling(temperature=1.0)] * 4000, [7] * 4000, range(4000))
    shares = torch.bincount(torch.tensor(ids), minlength=3) / 4000
    assert torch.allclose(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.03)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 255, 256, 511, 512, 513, 767, 768, 1000])
def test_greedy_takes_the_lowest_of_equals(name: str, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    logits = torch.randint(0, 40, (50, size), generator=generator).float()
    expected = [min(range(size), key=lambda id: (-row[id], id)) for row in logits.tolist()]
    assert drawn(name, logits, [JobSampling(temperature=0)] * 50, [0] * 50, range(50)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_row_without_a_possible_id_still_gives_one(name: str) -> None:
    logits = torch.full((2, 600), NEVER)
    logits[1] = float("nan")
    samplings = [JobSampling(temperature=0.5, top_p=0.5, min_p=0.1)] * 2
    assert all(0 <= id < 600 for id in drawn(name, logits, samplings, [1, 2], [3, 4]))
