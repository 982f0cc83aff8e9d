"""The sum at home by moe.cpp, which adds in the order in which rows stand: so they are put in it.

Why not torch: its bits would differ from those of moe_combine on the same machine, which may add
and multiply in one instruction.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.moe import moe_combine

__all__ = ("ep_combine",)


def ep_combine(rows: Tensor, inverse: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """See reference.py."""
    if not rows.shape[0]:
        return rows.new_zeros(inverse.shape[0], rows.shape[1])
    order = experts.argsort(dim=-1, stable=True)
    places = inverse.gather(-1, order)
    sorted_rows = rows[places.flatten().clamp(min=0).long()]
    at = torch.arange(places.numel(), dtype=torch.int32).view(places.shape)
    return moe_combine(sorted_rows, torch.where(places < 0, -1, at), weights.gather(-1, order))
