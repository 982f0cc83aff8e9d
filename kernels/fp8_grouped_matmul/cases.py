"""Products of block-quantised experts to prove and to measure."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.fp8_quant.cases import exact_rows
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.grouped_matmul.cases import offsets_of, reversed_experts
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FP8

__all__ = ("BENCHES", "CASES")


def _arguments(counts: Sequence[int], columns: int, width: int, dtype: torch.dtype) -> Arguments:
    experts = len(counts)
    w = noise(experts, columns, width, seed=1).to(FP8)
    scales = noise(experts, -(-columns // 128), -(-width // 128), seed=2).abs() + 0.1
    return exact_rows(sum(counts), width, dtype), w, scales, offsets_of(counts)


def _case(counts: Sequence[int], columns: int, width: int, dtype: torch.dtype) -> Case:
    return Case(
        f"{str(dtype).removeprefix('torch.')} {'+'.join(map(str, counts))}x{columns}x{width}",
        Signature(dtype=dtype),
        lambda: _arguments(counts, columns, width, dtype),
        permute=reversed_experts,
        order_of=lambda _, order: order,
        # Why so far: tensor cores of 9.0 keep 14 bits of a sum of 8-bit products.
        bound=1e-5 if dtype != torch.bfloat16 else None,
    )


def _quantised(counts: Sequence[int], columns: int, width: int) -> Case:
    """Reversed by hand: the rows' scales are turned with them."""

    def make() -> Arguments:
        x, w, scales, offsets = _arguments(counts, columns, width, torch.float32)
        q, x_scales = fp8_quant(x)
        return q, w, scales, offsets, x_scales

    def turned(given: Arguments, order: Tensor) -> Arguments:
        return *reversed_experts(given[:4], order), given[4][order].clone()

    return Case(
        f"quantised {'+'.join(map(str, counts))}x{columns}x{width}",
        Signature(dtype=torch.float16),
        make,
        keywords={"dtype": torch.float16},
        permute=turned,
        order_of=lambda _, order: order,
        bound=1e-5,
    )


def _masked(
    counts: Sequence[int],
    capacity: int,
    columns: int,
    width: int,
    *,
    quantised: bool,
    dtype: torch.dtype = torch.float16,
) -> Case:
    """Rows past an expert's count hold what would show."""
    experts = len(counts)

    def make() -> Arguments:
        _, w, scales, offsets = _arguments(counts, columns, width, torch.float32)
        rows = exact_rows(experts * capacity, width, torch.float32)
        y = noise(experts, capacity, columns, seed=3).to(dtype)
        past = (torch.arange(capacity)[None] >= torch.tensor(counts)[:, None]).flatten()
        if not quantised:
            x = rows.masked_fill(past[:, None], 6e4).view(experts, capacity, width)
            return x.to(dtype), w, scales, offsets.diff(), y
        q, x_scales = fp8_quant(rows)
        x_scales = x_scales.masked_fill(past[:, None], float("nan"))
        shape = experts, capacity, -1
        return q.view(*shape), w, scales, offsets.diff(), y, x_scales.view(*shape)

    kind = str(dtype).removeprefix("torch.")
    return Case(
        f"{f'quantised, {kind}' if quantised else kind} masked "
        f"{'+'.join(map(str, counts))} of {capacity}x{columns}x{width}",
        Signature(dtype=dtype),
        make,
        written=(4,),
        rows=(0, 1, 2, 3, 4, 5)[: 6 if quantised else 5],
        bound=1e-5 if dtype != torch.bfloat16 else None,
    )


def _masked_bench(rows: int, capacity: int) -> Bench:
    experts, columns, width = 128, 1536, 2048

    def make(device: torch.device) -> Arguments:
        x = torch.randn(experts * capacity, width, device=device)
        w = torch.randn(experts, columns, width, device=device).to(FP8)
        scales = torch.rand(experts, columns // 128, width // 128, device=device)
        q, x_scales = fp8_quant(x)
        counts = torch.full((experts,), rows, device=device, dtype=torch.int32)
        y = torch.empty(experts, capacity, columns, device=device, dtype=torch.bfloat16)
        shape = experts, capacity, -1
        return q.view(*shape), w, scales, counts, y, x_scales.view(*shape)

    moved = experts * (columns * width + rows * (width + width // 32 + columns * 2))
    return Bench(
        f"quantised {rows} of {capacity}, 128x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        moved,
        flops=2 * experts * rows * columns * width,
        fp8=True,
    )


def _bench(rows: int) -> Bench:
    experts, columns, width = 128, 1536, 2048

    def make(device: torch.device) -> Arguments:
        x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
        w = torch.randn(experts, columns, width, device=device).to(FP8)
        scales = torch.rand(experts, columns // 128, width // 128, device=device)
        return x, w, scales, offsets_of([rows // experts] * experts).to(device)

    moved = min(rows, experts) * columns * width + rows * (width * 4 + columns * 2)
    return Bench(
        f"bf16 {rows} rows, 128x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        moved,
        flops=2 * rows * columns * width,
        fp8=True,
    )


CASES = {
    "fp8_grouped_matmul": (
        *(_case((2, 0, 1), 200, 300, dtype) for dtype in (torch.float32, torch.bfloat16)),
        _case((0, 66, 3), 128, 128, torch.float16),
        _quantised((2, 0, 1), 40, 300),
    ),
    "fp8_grouped_matmul_masked": (
        _masked((2, 0, 1), 3, 140, 200, quantised=True),
        _masked((0, 70), 70, 128, 256, quantised=True),
        _masked((2, 0, 1), 3, 40, 200, quantised=False),
        *(
            _masked((2, 0, 1), 3, 140, 200, quantised=quantised, dtype=torch.bfloat16)
            for quantised in (True, False)
        ),
    ),
}
BENCHES = {
    "fp8_grouped_matmul": (_bench(512), _bench(65536)),
    "fp8_grouped_matmul_masked": (_masked_bench(4, 64), _masked_bench(128, 256)),
}
