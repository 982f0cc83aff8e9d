"""silu(gate) * up by flashinfer-python. Knows only its call."""

from __future__ import annotations

import flashinfer.activation
from torch import Tensor

__all__ = ("silu_mul",)


def silu_mul(x: Tensor) -> Tensor:
    """See reference.py."""
    return flashinfer.activation.silu_and_mul(x)
