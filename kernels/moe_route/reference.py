"""Which experts a token goes to, in torch, float32 inside.

softmax: Mixtral (arXiv:2401.04088, 2.1), Qwen3 (arXiv:2505.09388, 2). sigmoid with a bias and
groups: DeepSeek-V3 (arXiv:2412.19437, 2.1.2).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

__all__ = ("LEAST", "Scoring", "moe_route")

Scoring = Literal["softmax", "sigmoid"]
LEAST = 1e-20
"""Added to the sum that weights are divided by."""


def moe_route(
    logits: Tensor,
    top_k: int,
    scoring: Scoring = "softmax",
    renormalise: bool = True,
    *,
    bias: Tensor | None = None,
    groups: int = 1,
    groups_kept: int = 1,
    group_top: int = 2,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """logits[T, E] -> (weights[T, top_k] float32, experts[T, top_k] int32), the best first.

    Experts are ranked by score + `bias`[E] (float32), and weighted by the score alone; the lower
    index wins a tie, and what is no number comes last. Of `groups` equal runs of experts only
    the `groups_kept` with the largest sums of their `group_top` best are looked at. `renormalise`:
    a token's weights sum to 1 before they are multiplied by `scale`.
    """
    wide = logits.float()
    scores = wide.softmax(-1) if scoring == "softmax" else wide.sigmoid()
    rank = scores if bias is None else scores + bias
    rank = rank.masked_fill(rank.isnan(), -torch.inf)
    if groups > 1:
        by_group = rank.unflatten(-1, (groups, -1))
        best = _ranked(by_group)[0][..., :group_top].sum(-1)
        kept = _ranked(best)[1][..., :groups_kept]
        lost = torch.ones_like(best, dtype=torch.bool).scatter(-1, kept, False)
        rank = by_group.masked_fill(lost.unsqueeze(-1), -torch.inf).flatten(-2)
    experts = _ranked(rank)[1][..., :top_k]
    weights = scores.gather(-1, experts)
    if renormalise:
        weights = weights / (weights.sum(-1, keepdim=True) + LEAST)
    return weights * scale, experts.int()


def _ranked(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values and places, the largest first; equal ones stay in order."""
    found = values.sort(dim=-1, descending=True, stable=True)
    return found.values, found.indices
