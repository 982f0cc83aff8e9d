"""Weighted sums to prove and to measure: rows in any order, rows that are not there."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _arguments(tokens: int, top_k: int, width: int, dtype: torch.dtype, lost: int) -> Arguments:
    order = noise(tokens * top_k, seed=1).argsort().int()
    order[order < lost] = -1
    weights = noise(tokens, top_k, seed=2).softmax(-1)
    rows = noise(tokens * top_k, width, dtype=dtype)
    return rows, order.view(tokens, top_k), weights


def _case(tokens: int, top_k: int, width: int, dtype: torch.dtype, lost: int = 0) -> Case:
    name = f"{str(dtype).removeprefix('torch.')} {tokens}x{width} top {top_k}, {lost} lost"
    return Case(
        name,
        Signature(dtype=dtype),
        lambda: _arguments(tokens, top_k, width, dtype, lost),
        permute=lambda given, order: (given[0], given[1].flip(0), given[2].flip(0)),
        order_of=lambda given, _: torch.arange(given[1].shape[0] - 1, -1, -1),
    )


def _bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        given = _arguments(tokens, 8, 2048, torch.bfloat16, 0)
        return tuple(each.to(device) for each in given)

    moved = tokens * 2048 * 2 * 9 + tokens * 8 * 8
    return Bench(f"bf16 {tokens}x2048 top 8", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "moe_combine": (
        *(_case(5, 3, 300, dtype) for dtype in FLOATS),
        _case(4, 8, 1100, torch.float32),
        _case(6, 4, 20, torch.float32, 9),
        _case(3, 2, 20, torch.float32, 6),
    )
}
BENCHES = {"moe_combine": (_bench(64), _bench(8192))}
