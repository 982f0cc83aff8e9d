"""Rotary position embedding in torch, float32 inside."""

from __future__ import annotations

from torch import Tensor

__all__ = ("rope",)


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
    """Rotates the first R elements of each head of q[T, Hq, D] and k[T, Hkv, D] in place -> (q, k).

    positions[T] int64 picks rows of cos_sin[P, R] float32, which holds R/2 cosines, then R/2 sines
    (a scaling of attention, as YaRN has, is in them). Element i turns with element i + R/2.
    """
    cos, sin = cos_sin[positions].unsqueeze(1).chunk(2, dim=-1)
    half = cos.shape[-1]
    for x in (q, k):
        first, second = x[..., :half].float(), x[..., half : 2 * half].float()
        turned = first * cos - second * sin
        x[..., half : 2 * half] = (second * cos + first * sin).to(x.dtype)
        x[..., :half] = turned.to(x.dtype)
    return q, k
