"""Experts' rows in the order in which their senders wait for them, and the sum there, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("ep_combine", "ep_return")


def ep_return(rows: Tensor, inverse: Tensor, pairs: int) -> Tensor:
    """rows[R, H], inverse[N, k] int32 as ep_unpack gives it -> [pairs, H]: the row of each pair
    that is here, in the order of its token and column. `pairs` is how many are here.

    A row of each pair travels, and no sum of several: what a token gets is then summed at home in
    one fixed order, whatever ranks its experts are on.
    """
    places = inverse.flatten()
    return rows[places[places >= 0].long()]


def ep_combine(rows: Tensor, inverse: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """rows[R, H], inverse[T, k] int32, weights[T, k] float32, experts[T, k] int32 -> [T, H] in the
    dtype of rows.

    y[t] = sum of weights[t, j] * rows[inverse[t, j]], those with an inverse of -1 left out, summed
    in ascending order of experts[t, j]: as moe_combine does where all experts are in one place, so
    its bits are the same.
    """
    order = experts.argsort(dim=-1, stable=True)
    places, weights = inverse.gather(-1, order).long(), weights.gather(-1, order)
    total = torch.zeros(inverse.shape[0], rows.shape[1], device=rows.device)
    if not rows.shape[0]:
        return total.to(rows.dtype)
    for j in range(inverse.shape[1]):
        part = rows[places[:, j].clamp(min=0)].float() * weights[:, j, None]
        total = torch.where(places[:, j, None] < 0, total, total + part)
    return total.to(rows.dtype)
