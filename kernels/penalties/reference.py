"""Repetition, frequency and presence penalties over whole rows; exact, dense and slow."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("penalties",)


def penalties(
    logits: Tensor,
    prompt: Tensor,
    output: Tensor,
    repetition: Tensor,
    frequency: Tensor,
    presence: Tensor,
) -> None:
    """Penalises logits [R, V] fp32 in place.

    prompt [R, P] and output [R, O] int64 hold the ids so far, padded with V. `repetition` [R]
    (1: none) divides positive logits and multiplies negative ones of every id seen (Keskar et al.,
    CTRL, 2019); `frequency` [R] is taken off once an occurrence in the output, `presence` [R] once
    an id in it (as OpenAI's API has them).
    """
    vocabulary = logits.shape[1]
    counts = _counted(output, vocabulary)
    seen = (_counted(prompt, vocabulary) > 0) | (counts > 0)
    factor = repetition[:, None]
    scaled = torch.where(logits > 0, logits / factor, logits * factor)
    logits.copy_(torch.where(seen & (factor != 1), scaled, logits))
    logits -= frequency[:, None] * counts
    logits -= presence[:, None] * (counts > 0)


def _counted(ids: Tensor, vocabulary: int) -> Tensor:
    """How often each id stands in a row of ids [R, N] -> [R, vocabulary] fp32."""
    counts = torch.zeros(ids.shape[0], vocabulary + 1, device=ids.device)
    counts.scatter_add_(1, ids, torch.ones_like(ids, dtype=counts.dtype))
    return counts[:, :vocabulary]
