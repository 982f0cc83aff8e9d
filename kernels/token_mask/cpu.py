"""A grammar's bitmask on the CPU: eight bits at a look, and no look at rows that allow all."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("token_mask",)


def token_mask(logits: Tensor, bits: Tensor) -> None:
    """See reference.token_mask."""
    table = (torch.arange(256)[:, None] >> torch.arange(8)) & 1 == 0
    for row in (bits != -1).any(1).nonzero().flatten().tolist():
        refused = table[bits[row].contiguous().view(torch.uint8).long()].flatten()
        logits[row].masked_fill_(refused[: logits.shape[1]], float("-inf"))
