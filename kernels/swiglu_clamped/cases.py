"""Clamped gates to prove and to measure: values within the limit and far beyond it."""

from __future__ import annotations

from typing import Any

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _case(rows: int, width: int, dtype: torch.dtype, **keywords: Any) -> Case:
    name = f"{str(dtype).removeprefix('torch.')} {rows}x{width}"
    if keywords:
        name += f", {', '.join(f'{key} {value}' for key, value in keywords.items())}"
    signature = Signature(dtype=dtype)
    return Case(
        name,
        signature,
        lambda: (noise(rows, 2 * width, dtype=dtype) * 8,),
        keywords=keywords,
        rows=(0,),
    )


def _bench(rows: int, width: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        return (torch.randn(rows, 2 * width, device=device, dtype=torch.bfloat16),)

    signature = Signature(dtype=torch.bfloat16)
    return Bench(f"bf16 {rows}x{width}", signature, make, rows * width * 3 * 2)


CASES = {
    "swiglu_clamped": (
        *(case for dtype in FLOATS for case in (_case(5, 300, dtype), _case(2, 1100, dtype))),
        _case(3, 40, torch.float32, alpha=1.0, limit=0.5),
    )
}
BENCHES = {"swiglu_clamped": (_bench(4096, 2880),)}
