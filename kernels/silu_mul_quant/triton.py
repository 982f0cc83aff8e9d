"""silu(gate) * up and its quantisation in Triton: a program does some groups of a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "silu_mul_quant")

TOGETHER = 8
"""Groups of a program."""


@triton.jit
def silu_mul_quant_kernel(
    x, q, scales, x_stride, width, groups,
    GROUP: tl.constexpr, PADDED: tl.constexpr, TOGETHER: tl.constexpr,
):  # fmt: skip
    """PADDED: the power of two from GROUP on."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * TOGETHER + tl.arange(0, TOGETHER)
    place = tl.arange(0, PADDED)
    column = group[:, None] * GROUP + place[None, :]
    inside = (place < GROUP)[None, :] & (column < width)
    start = x + row * x_stride + column
    gate = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + width, mask=inside, other=0.0).to(tl.float32)
    # Why rounded: the two ops one after the other give the same bits.
    gated = (gate * tl.sigmoid(gate) * up).to(x.dtype.element_ty).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(gated), axis=1), 1e-10) / 448.0
    small = tl.minimum(tl.maximum(gated / scale[:, None], -448.0), 448.0)
    tl.store(q + row * width + column, small.to(q.dtype.element_ty), mask=inside)
    tl.store(scales + row * groups + group, scale, mask=group < groups)


def silu_mul_quant(x: Tensor, group: int = 128) -> tuple[Tensor, Tensor]:
    """See reference.py. The elements of a row lie side by side."""
    rows, width = x.shape[0], x.shape[1] // 2
    groups = triton.cdiv(width, group)
    q = torch.empty((rows, width), dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty((rows, groups), dtype=torch.float32, device=x.device)
    if q.numel():
        silu_mul_quant_kernel[(rows, triton.cdiv(groups, TOGETHER))](
            x, q, scales, x.stride(0), width, groups,
            GROUP=group, PADDED=triton.next_power_of_2(group), TOGETHER=TOGETHER,
        )  # fmt: skip
    return q, scales


SPECIALISATIONS = (
    Specialisation(
        "bf16 groups of 128", lambda: silu_mul_quant(meta(32, 2 * 4096)), minimum=(8, 9)
    ),
)
