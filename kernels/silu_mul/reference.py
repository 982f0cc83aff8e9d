"""silu(gate) * up in torch, float32 inside."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import silu

__all__ = ("silu_mul",)


def silu_mul(x: Tensor) -> Tensor:
    """x[T, 2I], the gate before the up projection -> [T, I] in x's dtype."""
    gate, up = x.float().chunk(2, dim=-1)
    return (silu(gate) * up).to(x.dtype)
