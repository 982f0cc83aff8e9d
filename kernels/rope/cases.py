"""Rotations to prove and to measure: heads inside a larger tensor, a part of a head turned."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _arguments(q_heads: int, k_heads: int, head: int, turned: int, dtype: torch.dtype) -> Arguments:
    q = noise(5, q_heads + 1, head, dtype=dtype)[:, :q_heads]
    k = noise(5, k_heads + 2, head, dtype=dtype, seed=1)[:, 2:]
    return q, k, torch.tensor([0, 3, 7, 9, 2]), noise(10, turned, seed=2)


def _case(q_heads: int, k_heads: int, head: int, turned: int, dtype: torch.dtype) -> Case:
    signature = Signature(dtype=dtype, heads=q_heads, kv_heads=k_heads, head_dim=head)
    return Case(
        f"{str(dtype).removeprefix('torch.')} {q_heads}+{k_heads} heads, {turned} of {head} turned",
        signature,
        lambda: _arguments(q_heads, k_heads, head, turned, dtype),
        rows=(0, 1, 2),
    )


def _bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        q = torch.randn(tokens, 32, 128, device=device, dtype=torch.bfloat16)
        k = torch.randn(tokens, 8, 128, device=device, dtype=torch.bfloat16)
        positions = torch.arange(tokens, device=device)
        return q, k, positions, torch.randn(tokens, 128, device=device)

    signature = Signature(dtype=torch.bfloat16, heads=32, kv_heads=8, head_dim=128)
    moved = tokens * (2 * 40 * 128 * 2 + 128 * 4 + 8)
    return Bench(f"bf16 {tokens} tokens, 32+8 heads of 128", signature, make, moved)


CASES = {
    "rope": (
        *(
            case
            for dtype in FLOATS
            for case in (_case(3, 2, 48, 32, dtype), _case(8, 1, 64, 64, dtype))
        ),
        _case(40, 8, 16, 16, torch.float32),
    )
}
BENCHES = {"rope": (_bench(4096),)}
