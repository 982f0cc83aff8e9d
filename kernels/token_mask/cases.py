"""Masks to prove and to measure: vocabularies that end within a word, rows that allow all."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature

__all__ = ("BENCHES", "CASES")


def _arguments(vocabulary: int) -> Arguments:
    generator = torch.Generator().manual_seed(vocabulary)
    words = -(-vocabulary // 32)
    bits = torch.randint(-(2**31), 2**31, (5, words), generator=generator).int()
    bits[1], bits[3] = -1, 0
    return noise(5, vocabulary), bits


def _case(vocabulary: int) -> Case:
    return Case(
        f"vocabulary of {vocabulary}",
        Signature(),
        lambda: _arguments(vocabulary),
        written=(0,),
        rows=(0, 1),
        bound=0.0,
    )


def _bench(device: torch.device) -> Arguments:
    bits = torch.zeros(256, 4748, device=device, dtype=torch.int32)
    return torch.randn(256, 151936, device=device), bits


CASES = {"token_mask": tuple(_case(size) for size in (1, 32, 33, 4100))}
BENCHES = {"token_mask": (Bench("256 rows", Signature(), _bench, 256 * (151936 * 4 + 4748 * 4)),)}
