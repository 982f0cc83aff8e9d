"""Rows to score: more asked for than there are, impossible ids, the likeliest and the last."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature

__all__ = ("BENCHES", "CASES")


def _arguments(vocabulary: int, top: int) -> Arguments:
    logits = noise(5, vocabulary) * 3
    logits[:, 1] = float("-inf")
    ids = torch.tensor([0, vocabulary - 1, 2, int(logits[3].argmax()), int(logits[4].argmin())])
    return logits, ids, top


def _case(vocabulary: int, top: int) -> Case:
    return Case(
        f"{top} of {vocabulary}",
        Signature(),
        lambda: _arguments(vocabulary, top),
        rows=(0, 1),
    )


def _bench(device: torch.device) -> Arguments:
    ids = torch.arange(256, device=device)
    return torch.randn(256, 151936, device=device), ids, 5


CASES = {"logprobs": (_case(300, 5), _case(5000, 0), _case(7, 20))}
BENCHES = {"logprobs": (Bench("5 of 256 rows", Signature(), _bench, 256 * 151936 * 4),)}
