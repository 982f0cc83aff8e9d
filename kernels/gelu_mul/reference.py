"""gelu(gate) * up in torch by the tanh approximation, float32 inside."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import gelu

__all__ = ("gelu_mul",)


def gelu_mul(x: Tensor) -> Tensor:
    """x[T, 2I], the gate before the up projection -> [T, I] in x's dtype."""
    gate, up = x.float().chunk(2, dim=-1)
    return (gelu(gate, approximate="tanh") * up).to(x.dtype)
