"""A real model: SmolLM2-135M-Instruct out of its GGUF, against transformers and geography."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tokenwire.core.checkpoint import Checkpoint
from tokenwire.core.factory import Services
from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import JobSampling, JobStopping, TokenJob

pytestmark = pytest.mark.torch

CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def text(smollm2: Path) -> Tokenizer:
    return Tokenizer.from_file(str(smollm2 / "tokenizer.json"))


@pytest.fixture(scope="module")
def network(smollm2: Path) -> Iterator[object]:
    """Loaded once: the tests below each give it an engine of their own."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokenwire.plugins.engines.reference.model import load

    return load(smollm2, gguf=None, device="cpu", dtype="auto")


def answer(model, smollm2: Path, prompt: list[int], max_tokens: int) -> list[int]:
    from tokenwire.plugins.engines.reference.build import assemble, make_card
    from tokenwire.plugins.engines.reference.settings import ReferenceSettings

    async def go() -> list[int]:
        settings = ReferenceSettings()
        services = Services(lone_services().keys, checkpoint=Checkpoint(smollm2), model="smollm2")
        engine: Engine = assemble(model, make_card(settings, services, model), settings)
        assert engine.status().card.context_length == 8192
        engine.submit(
            [
                TokenJob(
                    job="j",
                    model="smollm2",
                    prompt=TokenIds(prompt),
                    sampling=JobSampling(temperature=0.0),
                    stopping=JobStopping(max_tokens=max_tokens),
                )
            ]
        )
        found: list[int] = []
        async for batch in engine.batches():
            found += [id for delta in batch for id in delta.ids]
            if batch[-1].finish is not None:
                break
        await engine.drain(0)
        return found

    return asyncio.run(go())


def test_it_knows_the_capital_of_france(network, smollm2: Path, text: Tokenizer) -> None:
    prompt = text.encode(CHAT.format("What is the capital of France?"), add_special_tokens=False)
    assert "Paris" in text.decode(answer(network, smollm2, prompt.ids, 24))


def test_greedy_ids_equal_generate_over_64_tokens(network, smollm2: Path, text: Tokenizer) -> None:
    import torch

    chat = CHAT.format("Write a short poem about the sea.")
    prompt = text.encode(chat, add_special_tokens=False).ids
    found = answer(network, smollm2, prompt, 64)
    generated = network._network.generate(
        torch.tensor([prompt]), max_new_tokens=64, do_sample=False
    )
    assert found == generated[0].tolist()[len(prompt) :]
    assert len(found) == 64
