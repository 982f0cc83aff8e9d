"""Rotary position embedding by flashinfer-python. Knows only its call."""

from __future__ import annotations

import flashinfer.rope
from torch import Tensor

__all__ = ("rope",)


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
    """See reference.py. The heads of a token lie side by side."""
    flashinfer.rope.apply_rope_with_cos_sin_cache_inplace(
        positions=positions,
        query=q.view(q.shape[0], -1),
        key=k.view(k.shape[0], -1),
        head_size=q.shape[-1],
        cos_sin_cache=cos_sin,
        is_neox=True,
    )
    return q, k
