"""RMS norm by flashinfer-python. Knows only its calls."""

from __future__ import annotations

import flashinfer.norm
import torch
from torch import Tensor

__all__ = ("add_rms_norm", "rms_norm")


def rms_norm(x: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> Tensor:
    """See reference.py."""
    rows = x.reshape(-1, x.shape[-1])
    if offset == 1.0:
        return flashinfer.norm.gemma_rmsnorm(rows, weight, eps).view(x.shape)
    return flashinfer.norm.rmsnorm(rows, _gain(weight, offset), eps).view(x.shape)


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float = 0.0
) -> tuple[Tensor, Tensor]:
    """See reference.py. Why the copy: the vendor's call writes its result over x."""
    y = x.clone(memory_format=torch.contiguous_format)
    if offset == 1.0:
        flashinfer.norm.gemma_fused_add_rmsnorm(y, residual, weight, eps)
    else:
        flashinfer.norm.fused_add_rmsnorm(y, residual, _gain(weight, offset), eps)
    return y, residual


def _gain(weight: Tensor, offset: float) -> Tensor:
    return weight + offset if offset else weight
