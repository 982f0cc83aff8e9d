"""Gated activations quantised: numbers that stay exact on the way, and, on a GPU, noise."""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.fp8_quant.cases import exact_rows
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")

GATE = 32.0
"""silu of it is itself, in float32."""


def _exact(rows: int, width: int, dtype: torch.dtype) -> Tensor:
    up = exact_rows(rows, width, torch.float32) / GATE
    return torch.cat((torch.full_like(up, GATE), up), 1).to(dtype)


def _case(rows: int, width: int, dtype: torch.dtype, *, exact: bool) -> Case:
    return Case(
        f"{str(dtype).removeprefix('torch.')} {rows}x{width} {'exact' if exact else 'noise'}",
        Signature(dtype=dtype),
        lambda: (_exact(rows, width, dtype) if exact else noise(rows, 2 * width, dtype=dtype) * 3,),
        rows=(0,),
        bound=1e-12 if exact else 1e-3,
        interpretable=exact,
    )


def _bench(rows: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return (torch.randn(rows, 2 * width, device=device, dtype=torch.bfloat16),)

    moved = rows * width * 5 + rows * width // 128 * 4
    return Bench(f"bf16 {rows}x{width}", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "silu_mul_quant": tuple(
        case
        for dtype in FLOATS
        for case in (
            _case(3, 300, dtype, exact=True),
            _case(2, 2048, dtype, exact=True),
            _case(5, 640, dtype, exact=False),
        )
    )
}
BENCHES = {"silu_mul_quant": (_bench(4096, 4096),)}
