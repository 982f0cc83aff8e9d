"""Block-quantised experts by sgl-deep-gemm. Knows only its calls."""

from __future__ import annotations

import deep_gemm
import torch
from torch import Tensor

from tokenwire.kernels.fp8_matmul.reference import BLOCK
from tokenwire.kernels.fp8_quant.triton import fp8_quant
from tokenwire.kernels.grouped_matmul.reference import expert_of_row

__all__ = ("fp8_grouped_matmul", "fp8_grouped_matmul_masked", "spread")


def fp8_grouped_matmul(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    offsets: Tensor,
    x_scales: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """See reference.py; results in bfloat16. Each expert's rows are moved to where its call wants
    them to begin, and the results back."""
    q, kind = x, x.dtype if x_scales is None else dtype
    if x_scales is None:
        q, x_scales = fp8_quant(x, BLOCK)
    unit = deep_gemm.get_mk_alignment_for_contiguous_layout()
    place, whose = spread(x.shape[0], offsets, unit)
    room = torch.empty((len(whose), x.shape[1]), dtype=q.dtype, device=x.device)
    # Why bytes: not every release of torch scatters 8-bit floats.
    room.view(torch.uint8)[place] = q.view(torch.uint8)
    room_scales = x_scales.new_zeros(len(whose), x_scales.shape[1])
    room_scales[place] = x_scales
    y = torch.empty((len(whose), w.shape[1]), dtype=torch.bfloat16, device=x.device)
    deep_gemm.m_grouped_fp8_gemm_nt_contiguous((room, room_scales), (w, scales), y, whose)
    return y[place].to(kind)


def fp8_grouped_matmul_masked(
    x: Tensor,
    w: Tensor,
    scales: Tensor,
    counts: Tensor,
    y: Tensor,
    x_scales: Tensor | None = None,
) -> None:
    """See reference.py; y is of bfloat16. Why the capacity as the expected rows: the host reads no
    count, and the number only guides the choice of tiles."""
    q = x
    if x_scales is None:
        flat, flat_scales = fp8_quant(x.view(-1, x.shape[2]), BLOCK)
        q, x_scales = flat.view(x.shape), flat_scales.view(*x.shape[:2], -1)
    deep_gemm.m_grouped_fp8_gemm_nt_masked((q, x_scales), (w, scales), y, counts, x.shape[1])


def spread(rows: int, offsets: Tensor, unit: int) -> tuple[Tensor, Tensor]:
    """(where each row goes [rows] int64, whose each place is [P] int32, -1: nobody's), so that each
    expert begins at a multiple of `unit`. P holds any distribution, so that no count is read, and
    `unit` places more, where rows of no expert go."""
    experts = offsets.shape[0] - 1
    whole = (rows // unit + min(rows, experts)) * unit
    counts = offsets.diff()
    ends = ((counts + unit - 1) // unit * unit).cumsum(0)
    begins = torch.cat((ends.new_zeros(1), ends))
    mine = expert_of_row(rows, offsets)
    order = torch.arange(rows, device=offsets.device)
    place = begins[mine] + order - offsets[mine]
    place = torch.where(mine < experts, place, whole)
    whose = torch.full((whole + unit,), -1, dtype=torch.int32, device=offsets.device)
    whose[place] = torch.where(mine < experts, mine, -1).int()
    return place, whose
