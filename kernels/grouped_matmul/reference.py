"""Every expert's rows by its own weight, in torch, float32 inside.

Why each expert meets all rows: no shape may hang on how many rows an expert has.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("expert_of_row", "grouped_matmul", "grouped_matmul_masked")


def grouped_matmul(x: Tensor, w: Tensor, offsets: Tensor) -> Tensor:
    """x[R, K], w[E, N, K], offsets[E + 1] int32 -> [R, N] in x's dtype.

    Rows offsets[e] to offsets[e + 1] are multiplied by w[e].T. offsets[0] is 0; rows from
    offsets[E] on hold nothing that may be read.
    """
    mine = expert_of_row(x.shape[0], offsets)
    total = torch.zeros(x.shape[0], w.shape[1], device=x.device)
    for expert in range(w.shape[0]):
        found = x.float() @ w[expert].float().T
        total = torch.where((mine == expert)[:, None], found, total)
    return total.to(x.dtype)


def grouped_matmul_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    """x[E, C, K], w[E, N, K], counts[E] int32 -> into y[E, C, N], for the first counts[e] rows of
    each expert; the others of y stay as they are."""
    place = torch.arange(x.shape[1], device=x.device)
    for expert in range(w.shape[0]):
        found = (x[expert].float() @ w[expert].float().T).to(y.dtype)
        there = place < counts[expert]
        y[expert] = torch.where(there[:, None], found, y[expert])


def expert_of_row(rows: int, offsets: Tensor) -> Tensor:
    """[rows] int64: whose row it is; the number of experts for rows that are nobody's."""
    place = torch.arange(rows, device=offsets.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets[1:].contiguous(), place, right=True)
