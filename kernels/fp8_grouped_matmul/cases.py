"""Products of block-quantised experts to prove and to measure."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.fp8_quant.cases import exact_rows
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
    )
}
BENCHES = {"fp8_grouped_matmul": (_bench(512), _bench(65536))}
