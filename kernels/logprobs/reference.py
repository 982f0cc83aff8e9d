"""Log probability and rank of the chosen ids, and the likeliest ids beside them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("logprobs",)


def logprobs(logits: Tensor, ids: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of logits [R, V] and ids [R] int64: (chosen [R] fp32, rank [R] int64, top_values [R, n]
    fp32, top_ids [R, n] int64), n = min(top, V).

    rank 1 is the likeliest; equals share the better rank. The top values fall; which of equals
    comes first is not said.
    """
    scores = torch.log_softmax(logits.float(), -1)
    chosen = scores.gather(1, ids[:, None])
    rank = (scores > chosen).sum(-1) + 1
    values, best = torch.topk(scores, min(top, scores.shape[1]), -1)
    return chosen[:, 0], rank, values, best
