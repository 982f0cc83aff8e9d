"""Gated activations to prove and to measure."""

from __future__ import annotations

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _case(rows: int, width: int, dtype: torch.dtype) -> Case:
    name = f"{str(dtype).removeprefix('torch.')} {rows}x{width}"
    signature = Signature(dtype=dtype)
    return Case(name, signature, lambda: (noise(rows, 2 * width, dtype=dtype) * 3,), rows=(0,))


def _bench(rows: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return (torch.randn(rows, 2 * width, device=device, dtype=torch.bfloat16),)

    signature = Signature(dtype=torch.bfloat16)
    return Bench(f"bf16 {rows}x{width}", signature, make, rows * width * 3 * 2)


CASES = {
    "gelu_mul": tuple(
        case for dtype in FLOATS for case in (_case(5, 300, dtype), _case(2, 1100, dtype))
    )
}
BENCHES = {"gelu_mul": (_bench(4096, 12288),)}
