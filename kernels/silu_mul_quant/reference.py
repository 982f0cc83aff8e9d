"""silu(gate) * up and its quantisation to float8_e4m3fn, in torch: one after the other."""

from __future__ import annotations

from torch import Tensor

from tokenwire.kernels.fp8_quant.reference import fp8_quant
from tokenwire.kernels.silu_mul.reference import silu_mul

__all__ = ("silu_mul_quant",)


def silu_mul_quant(x: Tensor, group: int = 128) -> tuple[Tensor, Tensor]:
    """x[T, 2I], the gate before the up projection -> (q[T, I] float8_e4m3fn, scales[T, ceil(I /
    group)] float32): fp8_quant of silu_mul, which is rounded to x's dtype in between."""
    return fp8_quant(silu_mul(x), group)
