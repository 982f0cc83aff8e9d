"""RMS norm in torch, float32 inside."""

from __future__ import annotations

from torch import Tensor

__all__ = ("add_rms_norm", "rms_norm")


def rms_norm(x: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> Tensor:
    """x[..., H] / rms(x) * (weight[H] + offset), in x's dtype. Gemma's weights have offset 1."""
    wide = x.float()
    scale = (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    gain = weight.float() + offset if offset else weight.float()
    return (wide * scale * gain).to(x.dtype)


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float = 0.0
) -> tuple[Tensor, Tensor]:
    """(rms_norm(residual + x), residual + x) for x, residual [T, H]; `residual` holds the sum.

    The sum is rounded to its dtype before the norm, so that fused and unfused agree to the bit.
    """
    residual.add_(x)
    return rms_norm(residual, weight, eps, offset), residual
