"""Products to prove and to measure: ragged blocks, few and many rows."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.fp8_quant.cases import exact_rows
from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES")


def _arguments(rows: int, columns: int, width: int, dtype: torch.dtype) -> Arguments:
    w = noise(columns, width, seed=1).to(FP8)
    scales = noise(-(-columns // 128), -(-width // 128), seed=2).abs() + 0.1
    return exact_rows(rows, width, dtype), w, scales


def _case(rows: int, columns: int, width: int, dtype: torch.dtype) -> Case:
    return Case(
        f"{str(dtype).removeprefix('torch.')} {rows}x{columns}x{width}",
        Signature(dtype=dtype),
        lambda: _arguments(rows, columns, width, dtype),
        rows=(0,),
        # Why so far: tensor cores of 9.0 keep 14 bits of a sum of 8-bit products.
        bound=1e-5 if dtype != torch.bfloat16 else None,
    )


def _quantised(rows: int, columns: int, width: int) -> Case:
    def make() -> Arguments:
        x, w, scales = _arguments(rows, columns, width, torch.float32)
        q, x_scales = fp8_quant(x)
        return q, w, scales, x_scales

    return Case(
        f"quantised {rows}x{columns}x{width}",
        Signature(dtype=torch.float16),
        make,
        keywords={"dtype": torch.float16},
        rows=(0, 3),
        bound=1e-5,
    )


def _bench(rows: int, columns: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
        w = torch.randn(columns, width, device=device).to(FP8)
        return x, w, torch.rand(columns // 128, width // 128, device=device)

    # The quantisation of x is a part of the op: x is read, its bytes are written and read.
    moved = columns * width + rows * width * 4 + rows * columns * 2
    return Bench(
        f"bf16 {rows}x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        moved,
        flops=2 * rows * columns * width,
        fp8=True,
    )


CASES = {
    "fp8_matmul": (
        *(_case(3, 200, 300, dtype) for dtype in FLOATS),
        _case(65, 256, 256, torch.float16),
        _quantised(3, 40, 300),
    )
}
BENCHES = {"fp8_matmul": (_bench(16, 4096, 4096), _bench(4096, 4096, 4096))}
