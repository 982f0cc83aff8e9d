"""A token's rows summed by weight, in torch, float32 inside."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("moe_combine",)


def moe_combine(rows: Tensor, inverse: Tensor, weights: Tensor) -> Tensor:
    """rows[R, H], inverse[T, k] int32, weights[T, k] float32 -> [T, H] in the dtype of rows.

    y[t] = sum of weights[t, j] * rows[inverse[t, j]], those with an inverse of -1 left out. Summed
    from the smallest inverse on, which is in the order of the experts: so a token's bits depend
    neither on the order in which experts were picked, nor on other tokens.
    """
    order = inverse.argsort(dim=-1)
    places, weights = inverse.gather(-1, order).long(), weights.gather(-1, order)
    total = torch.zeros(inverse.shape[0], rows.shape[1], device=rows.device)
    for j in range(inverse.shape[1]):
        part = rows[places[:, j].clamp(min=0)].float() * weights[:, j, None]
        total = torch.where(places[:, j, None] < 0, total, total + part)
    return total.to(rows.dtype)
