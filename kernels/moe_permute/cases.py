"""Permutations to prove and to measure: skewed, experts of no rows, pairs of no expert."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES", "picked")


def picked(tokens: int, top_k: int, count: int, *, skew: float = 0.0, seed: int = 0) -> Tensor:
    """experts[tokens, top_k] int32, no expert twice for a token; `skew` favours the first ones."""
    favour = -skew * torch.arange(count).float()
    return (noise(tokens, count, seed=seed) + favour).topk(top_k).indices.int()


def _case(name: str, width: int, experts: Tensor, count: int, dtype: torch.dtype) -> Case:
    tokens = experts.shape[0]
    return Case(
        f"{str(dtype).removeprefix('torch.')} {tokens}x{width}, {name}",
        Signature(dtype=dtype),
        lambda: (noise(tokens, width, dtype=dtype), experts.clone(), count),
    )


def _some_nobodys() -> Tensor:
    experts = picked(9, 3, 8) - 2
    experts[experts == 5] = 9
    return experts


def _bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        x = torch.randn(tokens, 2048, device=device, dtype=torch.bfloat16)
        return x, picked(tokens, 8, 128).to(device), 128

    moved = tokens * 2048 * 2 * 9 + tokens * 8 * 8
    return Bench(f"bf16 {tokens}x2048 top 8 of 128", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "moe_permute": (
        *(_case("top 3 of 8", 300, picked(11, 3, 8), 8, dtype) for dtype in FLOATS),
        _case("skewed, some without rows", 40, picked(13, 2, 16, skew=1.0), 16, torch.float32),
        _case("more pairs than a chunk", 3, picked(700, 2, 4), 4, torch.float32),
        _case("pairs of no expert", 20, _some_nobodys(), 6, torch.float32),
        _case("all of no expert", 20, torch.full((3, 2), -1, dtype=torch.int32), 6, torch.float32),
        _case("one token", 20, picked(1, 4, 32), 32, torch.float32),
    )
}
BENCHES = {"moe_permute": (_bench(64), _bench(8192))}
