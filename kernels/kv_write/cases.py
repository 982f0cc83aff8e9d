"""Writes to prove and to measure: rows that are skipped, odd heads, a cache of 8-bit floats."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES")


def _arguments(kv_heads: int, head: int, dtype: torch.dtype, cache_dtype: torch.dtype) -> Arguments:
    k, v = _rows(kv_heads, head, dtype, 0), _rows(kv_heads, head, dtype, 1)
    caches = (noise(4, 16, kv_heads, head, seed=seed).to(cache_dtype) for seed in (2, 3))
    return k, v, *caches, torch.tensor([17, -1, 18, 1, 63]), 0.5, 2.0


def _rows(kv_heads: int, head: int, dtype: torch.dtype, seed: int) -> Tensor:
    """Within a larger tensor, as q, k and v come from one product; times 448 / 4, so that some
    saturate. Of numbers that a cache of 8-bit floats holds exactly."""
    exact = (noise(5, 2 * kv_heads, head, seed=seed) * 112).to(FP8).to(dtype)
    return exact[:, :kv_heads]


def _case(kv_heads: int, head: int, dtype: torch.dtype, cache_dtype: torch.dtype) -> Case:
    signature = Signature(dtype=dtype, kv_dtype=cache_dtype, kv_heads=kv_heads, head_dim=head)
    names = " into ".join(str(one).removeprefix("torch.") for one in (dtype, cache_dtype))
    return Case(
        f"{names}, {kv_heads} heads of {head}",
        signature,
        lambda: _arguments(kv_heads, head, dtype, cache_dtype),
        written=(2, 3),
        rows=(0, 1, 4),
        bound=0.0,
    )


def _bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        rows = torch.randn(2, tokens, 8, 128, device=device, dtype=torch.bfloat16)
        caches = torch.zeros(2, tokens // 16, 16, 8, 128, device=device, dtype=torch.bfloat16)
        return rows[0], rows[1], caches[0], caches[1], torch.randperm(tokens, device=device)

    signature = Signature(dtype=torch.bfloat16, kv_heads=8, head_dim=128)
    moved = tokens * (4 * 8 * 128 * 2 + 8)
    return Bench(f"bf16 {tokens} tokens, 8 heads of 128", signature, make, moved)


CASES = {
    "kv_write": tuple(
        case
        for dtype in FLOATS
        for case in (
            _case(3, 40, dtype, dtype),
            _case(2, 64, dtype, dtype),
            _case(3, 40, dtype, FP8),
        )
    )
}
BENCHES = {"kv_write": (_bench(4096),)}
