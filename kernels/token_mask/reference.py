"""Applies a grammar's bitmask to logits, bit by bit."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("token_mask",)


def token_mask(logits: Tensor, bits: Tensor) -> None:
    """Makes ids of logits [R, V] impossible (-inf), in place, whose bit is not set.

    bits [R, ceil(V / 32)] int32: id i is bit i % 32, the lowest first, of word i // 32 (the
    layout of xgrammar and llguidance). A row of -1 allows everything.
    """
    shifts = torch.arange(32, device=bits.device, dtype=torch.int32)
    allowed = ((bits[:, :, None] >> shifts) & 1).flatten(1)[:, : logits.shape[1]] == 1
    logits.masked_fill_(~allowed, float("-inf"))
