"""Rows on their way back, and sums at home: in any order, of pairs that went nowhere."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.moe_permute.cases import picked
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _places(tokens: int, top_k: int, lost: int) -> torch.Tensor:
    order = noise(tokens * top_k, seed=1).argsort().int()
    order[order < lost] = -1
    return order.view(tokens, top_k)


def _return(
    tokens: int, top_k: int, width: int, lost: int, dtype: torch.dtype = torch.float32
) -> Case:
    def make() -> Arguments:
        rows = noise(tokens * top_k, width, dtype=dtype)
        return rows, _places(tokens, top_k, lost), tokens * top_k - lost

    kind = str(dtype).removeprefix("torch.")
    name = f"{kind} {tokens}x{width} top {top_k}, {lost} elsewhere"
    return Case(name, Signature(dtype=dtype), make)


def _sum(
    tokens: int, top_k: int, width: int, dtype: torch.dtype = torch.float32, lost: int = 0
) -> Case:
    def make() -> Arguments:
        weights = noise(tokens, top_k, seed=2).softmax(-1)
        rows = noise(tokens * top_k, width, dtype=dtype)
        return rows, _places(tokens, top_k, lost), weights, picked(tokens, top_k, 2 * top_k)

    kind = str(dtype).removeprefix("torch.")
    return Case(
        f"{kind} {tokens}x{width} top {top_k}, {lost} lost",
        Signature(dtype=dtype),
        make,
        permute=lambda given, order: (given[0], *(each.flip(0) for each in given[1:])),
        order_of=lambda given, _: torch.arange(given[1].shape[0] - 1, -1, -1),
    )


def _bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        case = _sum(tokens, 8, 2048, torch.bfloat16)
        return tuple(each.to(device) for each in case.make())

    moved = tokens * 2048 * 2 * 9 + tokens * 8 * 12
    return Bench(f"bf16 {tokens}x2048 top 8", Signature(dtype=torch.bfloat16), make, moved)


def _return_bench(pairs: int) -> Bench:
    """Of 8 times as many pairs an eighth is here."""

    def make(device: torch.device) -> Arguments:
        places = torch.full((8 * pairs,), -1, dtype=torch.int32)
        places[noise(8 * pairs).argsort()[:pairs]] = noise(pairs, seed=1).argsort().int()
        rows = torch.randn(pairs, 4096, device=device, dtype=torch.bfloat16)
        return rows, places.view(-1, 8).to(device), pairs

    moved = pairs * (4096 * 4 + 8 * 4)
    return Bench(f"bf16 {pairs}x4096 of {8 * pairs}", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "ep_return": (
        *(_return(5, 3, 300, 4, dtype) for dtype in FLOATS),
        _return(700, 2, 5, 800),
        _return(3, 2, 1100, 0),
        _return(3, 2, 20, 6),
    ),
    "ep_combine": (
        *(_sum(5, 3, 300, dtype) for dtype in FLOATS),
        _sum(4, 8, 1100),
        _sum(6, 4, 20, lost=9),
        _sum(3, 2, 20, lost=6),
    ),
}
BENCHES = {
    "ep_return": (_return_bench(64), _return_bench(4096)),
    "ep_combine": (_bench(64), _bench(8192)),
}
