"""A real model out of its GGUF: greedy ids equal those of transformers."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.plugins.engines.cuda.models.paged import Paged, reference_ops  # noqa: E402
from tokenwire.plugins.engines.cuda.load import load  # noqa: E402

pytestmark = pytest.mark.torch

CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\nWrite a short poem about the sea.<|im_end|>\n"
    "<|im_start|>assistant\n"
)
TOKENS = 64


@pytest.fixture(scope="module")
def theirs(smollm2: Path):
    from tokenwire.plugins.engines.reference.model import load as load_reference

    return load_reference(smollm2, gguf=None, device="cpu", dtype="float32")._network


@pytest.fixture(scope="module")
def ours(smollm2: Path):
    return load(smollm2, device="cpu", dtype=torch.float32, ops=reference_ops())


def test_the_file_says_what_the_folder_says(ours, theirs) -> None:
    config = ours.config
    wanted = theirs.config
    assert (config.layers, config.heads, config.kv_heads) == (30, 9, 3)
    assert config.vocab_size == wanted.vocab_size
    assert config.context_length == wanted.max_position_embeddings
    assert config.ropes[0].theta == wanted.rope_parameters["rope_theta"]
    assert config.tie
    assert config.eos_ids == (2,)


def test_greedy_ids_equal_transformers_over_64_tokens(smollm2: Path, ours, theirs) -> None:
    from tokenizers import Tokenizer

    text = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    prompt = text.encode(CHAT, add_special_tokens=False).ids
    paged = Paged(ours.model, [prompt])
    for count in (13, 17, len(prompt) - 30):
        logits = paged.step({0: count})[0]
    for _ in range(TOKENS):
        paged.sequences[0].append(int(logits[-1].argmax()))
        logits = paged.step({0: 1})[0]
    generated = theirs.generate(
        torch.tensor([prompt]),
        max_new_tokens=TOKENS,
        min_new_tokens=TOKENS,
        do_sample=False,
    )
    found = paged.sequences[0][len(prompt) :]
    wanted = generated[0].tolist()[len(prompt) :]
    if 2 in found:  # Why: a shortest length forbids transformers the end.
        wanted = wanted[: found.index(2)]
        found = found[: found.index(2)]
    assert len(found) >= 32
    assert found == wanted


def test_a_prefill_equals_transformers(ours, theirs) -> None:
    ids = torch.arange(100, 164).tolist()
    logits = Paged(ours.model, [ids]).step({0: len(ids)})[0]
    with torch.no_grad():
        wanted = theirs(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits, wanted, atol=2e-3, rtol=1e-4)
