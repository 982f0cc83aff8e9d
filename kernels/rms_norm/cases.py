"""Norms to prove and to measure: rows odd and long, views of heads, Gemma's offset."""

from __future__ import annotations

from functools import partial

import torch

from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS

__all__ = ("BENCHES", "CASES")


def _rows(rows: int, width: int, dtype: torch.dtype, offset: float) -> Arguments:
    return noise(rows, width, dtype=dtype), noise(width, dtype=dtype, seed=1), 1e-6, offset


def _heads(dtype: torch.dtype) -> Arguments:
    return noise(5, 7, 64, dtype=dtype)[:, 1:4], noise(64, dtype=dtype, seed=1), 1e-5, 0.0


def _pair(rows: int, width: int, dtype: torch.dtype, offset: float) -> Arguments:
    x, weight, eps, _ = _rows(rows, width, dtype, offset)
    return x, noise(rows, width, dtype=dtype, seed=2), weight, eps, offset


def _cases(dtype: torch.dtype) -> tuple[Case, ...]:
    name, signature = str(dtype).removeprefix("torch."), Signature(dtype=dtype)
    return (
        Case(f"{name} 5x300", signature, lambda: _rows(5, 300, dtype, 0.0), rows=(0,)),
        Case(f"{name} 3x2048 offset 1", signature, lambda: _rows(3, 2048, dtype, 1.0), rows=(0,)),
        Case(f"{name} 5x3x64 a view", signature, lambda: _heads(dtype), rows=(0,)),
    )


def _add_cases(dtype: torch.dtype) -> tuple[Case, ...]:
    name, signature = str(dtype).removeprefix("torch."), Signature(dtype=dtype)
    return tuple(
        Case(
            f"{name} {rows}x{width} offset {offset:g}",
            signature,
            partial(_pair, rows, width, dtype, offset),
            written=(1,),
            rows=(0, 1),
        )
        for rows, width, offset in ((5, 300, 0.0), (1, 4096, 1.0))
    )


def _bench(rows: int, width: int, *, pair: bool) -> Bench:
    def make(device: torch.device) -> Arguments:
        x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
        weight = torch.randn(width, device=device, dtype=torch.bfloat16)
        return (x, x.clone(), weight, 1e-6) if pair else (x, weight, 1e-6)

    passes = 4 if pair else 2
    moved = (rows * passes + 1) * width * 2
    return Bench(f"bf16 {rows}x{width}", Signature(dtype=torch.bfloat16), make, moved)


CASES = {
    "rms_norm": tuple(case for dtype in FLOATS for case in _cases(dtype)),
    "add_rms_norm": tuple(case for dtype in FLOATS for case in _add_cases(dtype)),
}
BENCHES = {
    "rms_norm": (_bench(4096, 4096, pair=False),),
    "add_rms_norm": (_bench(4096, 4096, pair=True), _bench(256, 4096, pair=True)),
}
