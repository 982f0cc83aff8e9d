"""Penalties to prove and to measure: ids that repeat, empty outputs, rows without a penalty."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature

__all__ = ("BENCHES", "CASES")


def _arguments(vocabulary: int, prompts: int, outputs: int) -> Arguments:
    """Each row's padding is longer than that of the row before."""
    generator = torch.Generator().manual_seed(prompts)
    prompt, output = (
        torch.randint(0, vocabulary, (5, length), generator=generator)
        for length in (prompts, outputs)
    )
    for row in range(5):
        prompt[row, prompts - prompts * row // 4 :] = vocabulary
        output[row, outputs - outputs * row // 4 :] = vocabulary
    logits = noise(5, vocabulary)
    logits[:, 3] = float("-inf")
    repetition = torch.tensor([1.0, 1.3, 0.7, 1.1, 1.5])
    frequency = torch.tensor([0.0, 0.5, 0.0, -0.3, 1.0])
    presence = torch.tensor([0.0, 0.0, 0.9, 0.2, 1.0])
    return logits, prompt, output, repetition, frequency, presence


def _case(vocabulary: int, prompts: int, outputs: int) -> Case:
    return Case(
        f"vocabulary of {vocabulary}, {prompts} ids before, {outputs} since",
        Signature(),
        lambda: _arguments(vocabulary, prompts, outputs),
        written=(0,),
        rows=tuple(range(6)),
        bound=1e-12,
    )


def _bench(device: torch.device) -> Arguments:
    logits = torch.randn(64, 151936, device=device)
    ids = torch.randint(0, 151936, (64, 4096), device=device)
    some = torch.full((64,), 1.1, device=device)
    return logits, ids[:, :3072], ids[:, 3072:], some, some, some


CASES = {"penalties": (_case(50, 40, 90), _case(50, 0, 7), _case(50, 9, 0), _case(3000, 1500, 20))}
BENCHES = {"penalties": (Bench("64 rows of 4096 ids", Signature(), _bench, 64 * 4096 * 16),)}
