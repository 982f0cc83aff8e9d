"""Dense products to prove and to measure: odd sizes, one row, biases, rows that are a view."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _case(
    rows: int,
    columns: int,
    width: int,
    dtype: torch.dtype,
    *,
    bias: bool = False,
    exact: bool = False,
    view: bool = False,
) -> Case:
    """`exact`: small whole numbers. Why: over more than a tile, the product that the interpreter
    takes changes its bits with a row's place in the tile."""

    def numbers(*sizes: int, seed: int) -> Tensor:
        found = noise(*sizes, seed=seed)
        return ((found * 3).round() if exact else found / width**0.25).to(dtype)

    def make() -> Arguments:
        x = numbers(rows, width + 8 * view, seed=0)[:, :width]
        return x, numbers(columns, width, seed=1), numbers(columns, seed=2) if bias else None

    parts = [f"{str(dtype).removeprefix('torch.')} {rows}x{columns}x{width}"]
    parts += ["bias"] * bias + ["view"] * view
    return Case(", ".join(parts), Signature(dtype=dtype), make, rows=(0,))


def _bench(rows: int, columns: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        kind = torch.bfloat16
        x = torch.randn(rows, width, device=device, dtype=kind)
        return x, torch.randn(columns, width, device=device, dtype=kind)

    return Bench(
        f"bf16 {rows}x{columns}x{width}",
        Signature(dtype=torch.bfloat16),
        make,
        2 * (columns * width + rows * (width + columns)),
        flops=2 * rows * columns * width,
    )


CASES = {
    "matmul": (
        *(_case(5, 40, 48, dtype, bias=True) for dtype in FLOATS),
        _case(70, 136, 100, torch.float32, exact=True),
        _case(130, 72, 64, torch.float16, exact=True, bias=True),
        _case(1, 17, 20, torch.float32),
        _case(3, 6, 33, torch.float32, bias=True, view=True),
    )
}
BENCHES = {"matmul": (_bench(64, 6144, 4096), _bench(4096, 6144, 4096))}
