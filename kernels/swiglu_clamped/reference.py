"""The clamped gate of gpt-oss in torch, float32 inside."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("swiglu_clamped",)


def swiglu_clamped(x: Tensor, alpha: float = 1.702, limit: float = 7.0) -> Tensor:
    """x[T, 2I], the gate before the up projection -> [T, I] in x's dtype:
    (up + 1) * gate * sigmoid(alpha * gate), after gate <= limit and -limit <= up <= limit
    (gpt-oss, arXiv:2508.10925; its checkpoints call the two swiglu_alpha and swiglu_limit)."""
    gate, up = x.float().chunk(2, dim=-1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return ((up + 1) * gate * torch.sigmoid(alpha * gate)).to(x.dtype)
