"""Quantisations to prove and to measure: numbers the format holds exactly, and, on a GPU, noise."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES", "exact_rows")


def exact_rows(rows: int, width: int, dtype: torch.dtype, group: int = 128) -> Tensor:
    """Rows that quantisation by groups keeps: each group holds 448 times a power of two, and else
    numbers of the format times it. The second group of the last row is zero."""
    exact = (noise(rows, width) * 100).to(FP8).float()
    exact[:, ::group] = 448.0
    groups = -(-width // group)
    powers = torch.arange(rows * groups).view(rows, groups) % 4 - 8
    spread = (2.0**powers).repeat_interleave(group, dim=1)[:, :width]
    exact *= spread
    exact[-1, group : 2 * group] = 0.0
    return exact.to(dtype)


def _case(rows: int, width: int, dtype: torch.dtype, *, exact: bool) -> Case:
    kind = "exact" if exact else "noise"
    return Case(
        f"{str(dtype).removeprefix('torch.')} {rows}x{width} {kind}",
        Signature(dtype=dtype),
        lambda: (exact_rows(rows, width, dtype) if exact else noise(rows, width, dtype=dtype),),
        rows=(0,),
        bound=1e-12 if exact else None,
        interpretable=exact,
    )


def _bench(rows: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return (torch.randn(rows, width, device=device, dtype=torch.bfloat16),)

    moved = rows * width * 3 + rows * width // 128 * 4
    return Bench(f"bf16 {rows}x{width}", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "fp8_quant": tuple(
        case
        for dtype in FLOATS
        for case in (
            _case(3, 300, dtype, exact=True),
            _case(2, 2048, dtype, exact=True),
            _case(5, 640, dtype, exact=False),
        )
    )
}
BENCHES = {"fp8_quant": (_bench(4096, 4096),)}
