"""Penalties, masks and log probabilities: equal to what the reference engine computes a row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwire.core.tokens import JobSampling

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
engine = pytest.importorskip("tokenwire.plugins.engines.reference.sampling")
penalties = pytest.importorskip("tokenwire.kernels.penalties").OPS[0]
token_mask = pytest.importorskip("tokenwire.kernels.token_mask").OPS[0]
logprobs = pytest.importorskip("tokenwire.kernels.logprobs").OPS[0]

ON_CPU = ["reference", "cpu"]
NEVER = float("-inf")
VOCABULARY = 40
ids = st.lists(st.integers(0, VOCABULARY - 1), max_size=30)
rows = st.tuples(
    ids.filter(bool),
    ids,
    st.sampled_from([1.0, 1.3, 0.5]),
    st.sampled_from([0.0, 0.7, -2.0]),
    st.sampled_from([0.0, 0.4, -1.0]),
)


def padded(lists) -> object:
    width = max(map(len, lists))
    return torch.tensor([[*each, *[VOCABULARY] * (width - len(each))] for each in lists]).long()


@pytest.mark.parametrize("name", ON_CPU)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30), st.lists(rows, min_size=1, max_size=4))
def test_penalties_are_those_of_the_reference_engine(name: str, seed: int, batch) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(batch), VOCABULARY, generator=generator)
    logits[:, 5] = NEVER
    prompts, outputs, *amounts = zip(*batch, strict=True)
    expected = [
        engine.penalised(
            row,
            JobSampling(repetition_penalty=r, frequency_penalty=f, presence_penalty=p),
            prompt=prompt,
            output=output,
        )
        for row, (prompt, output, r, f, p) in zip(logits, batch, strict=True)
    ]
    got = logits.clone()
    function = penalties.implementation(name).load()
    function(got, padded(prompts), padded(outputs), *map(torch.tensor, amounts))
    assert torch.equal(got, torch.stack(expected))


@pytest.mark.parametrize("name", ON_CPU)
@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000])
def test_a_mask_leaves_what_its_bits_allow(name: str, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    allowed = torch.rand(6, size, generator=generator) < 0.5
    allowed[2], allowed[3] = True, False
    words = torch.zeros(6, -(-size // 32), dtype=torch.int64)
    for id in range(size):
        words[:, id // 32] |= allowed[:, id].long() << (id % 32)
    words[2] = -1  # the bits after the last id too
    logits = torch.randn(6, size, generator=generator)
    got = logits.clone()
    token_mask.implementation(name).load()(got, words.int())
    assert torch.equal(got, logits.where(allowed, torch.tensor(NEVER)))


@pytest.mark.parametrize("top", [0, 1, 5, 100])
def test_logprobs_are_those_of_the_reference_engine(top: int) -> None:
    logits = torch.randn(7, VOCABULARY, generator=torch.Generator().manual_seed(top)) * 3
    logits[:, 1] = NEVER
    chosen_ids = torch.tensor([0, 1, 2, 39, int(logits[4].argmax()), 5, 6])
    chosen, rank, values, best = logprobs.reference(logits, chosen_ids, top)
    assert values.shape == best.shape == (7, min(top, VOCABULARY))
    for row in range(7):
        scores = torch.log_softmax(logits[row], 0)
        expected = engine.scored(scores, int(chosen_ids[row]), top)
        pairs = list(zip(best[row].tolist(), values[row].tolist(), strict=True))
        assert (float(chosen[row]), int(rank[row]), pairs) == expected
