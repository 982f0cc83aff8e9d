"""Absorbed decode on the CPU by the compiled decode.cpp: entries are keys and values at once.

A row's bits depend on it alone. The rotated numbers are summed too, and left: that is a tenth of
the work, and the kernel is one.
"""

from __future__ import annotations

from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.attention.native import attention_decode

__all__ = ("mla_decode",)


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """See reference.py; float32 or bfloat16, entries of a multiple of 8 numbers."""
    mixed = attention_decode(q, cache, cache, batch, scale, k_scale=k_scale, v_scale=k_scale)
    return mixed[..., :value_dim]
