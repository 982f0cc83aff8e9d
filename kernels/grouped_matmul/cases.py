"""Products of many experts to prove and to measure: ragged, skewed, experts of no rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES", "offsets_of", "reversed_experts")


def offsets_of(counts: Sequence[int]) -> Tensor:
    return torch.tensor(list(accumulate(counts, initial=0)), dtype=torch.int32)


def reversed_experts(given: Arguments, order: Tensor) -> Arguments:
    """All rows and with them all experts the other way round. `order` is that of the rows."""
    x, *weights, offsets = given
    turned = offsets[-1] - offsets.flip(0)
    return (x[order].clone(), *(each.flip(0) for each in weights), turned)


def _case(
    counts: Sequence[int], columns: int, width: int, dtype: torch.dtype, *, exact: bool = False
) -> Case:
    """`exact`: small whole numbers. Why: over more than a tile, the product that the interpreter
    takes changes its bits with a row's place in the tile."""
    shape = len(counts), columns, width

    def numbers(*sizes: int, seed: int) -> Tensor:
        found = noise(*sizes, seed=seed)
        return ((found * 3).round() if exact else found / width**0.25).to(dtype)

    return Case(
        f"{str(dtype).removeprefix('torch.')} {'+'.join(map(str, counts))}x{columns}x{width}",
        Signature(dtype=dtype),
        lambda: (
            numbers(sum(counts), width, seed=0),
            numbers(*shape, seed=1),
            offsets_of(counts),
        ),
        permute=reversed_experts,
        order_of=lambda _, order: order,
    )


def _masked(
    counts: Sequence[int],
    capacity: int,
    columns: int,
    width: int,
    dtype: torch.dtype = torch.float32,
) -> Case:
    experts, kind = len(counts), str(dtype).removeprefix("torch.")
    return Case(
        f"{kind} masked {'+'.join(map(str, counts))} of {capacity}x{columns}x{width}",
        Signature(dtype=dtype),
        lambda: (
            noise(experts, capacity, width, dtype=dtype),
            (noise(experts, columns, width, seed=1) / width**0.5).to(dtype),
            torch.tensor(counts, dtype=torch.int32),
            noise(experts, capacity, columns, dtype=dtype, seed=2),
        ),
        written=(3,),
        rows=(0, 1, 2, 3),
    )


def _bench(rows: int) -> Bench:
    experts, columns, width = 128, 1536, 2048

    def make(device: torch.device) -> Arguments:
        x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
        w = torch.randn(experts, columns, width, device=device, dtype=torch.bfloat16)
        return x, w, offsets_of([rows // experts] * experts).to(device)

    moved = 2 * (min(rows, experts) * columns * width + rows * (width + columns))
    return Bench(
        f"bf16 {rows} rows, 128x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        moved,
        flops=2 * rows * columns * width,
    )


def _masked_bench(rows: int, capacity: int) -> Bench:
    experts, columns, width = 128, 1536, 2048

    def make(device: torch.device) -> Arguments:
        kind = torch.bfloat16
        return (
            torch.randn(experts, capacity, width, device=device, dtype=kind),
            torch.randn(experts, columns, width, device=device, dtype=kind),
            torch.full((experts,), rows, device=device, dtype=torch.int32),
            torch.empty(experts, capacity, columns, device=device, dtype=kind),
        )

    moved = 2 * experts * (columns * width + rows * (width + columns))
    return Bench(
        f"bf16 {rows} of {capacity}, 128x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        moved,
        flops=2 * experts * rows * columns * width,
    )


CASES = {
    "grouped_matmul": (
        *(_case((3, 0, 5, 1), 40, 48, dtype) for dtype in FLOATS),
        _case((0, 0, 70, 0, 2), 72, 100, torch.float32, exact=True),
        _case((1,) * 6, 16, 20, torch.float32),
        _case((200, 1), 130, 64, torch.float16, exact=True),
    ),
    "grouped_matmul_masked": (
        *(_masked((3, 0, 5, 1), 6, 40, 48, dtype) for dtype in FLOATS),
        _masked((0, 70, 1), 70, 72, 100),
        _masked((0, 0), 3, 16, 20),
    ),
}
BENCHES = {
    "grouped_matmul": (_bench(512), _bench(65536)),
    "grouped_matmul_masked": (_masked_bench(4, 64),),
}
