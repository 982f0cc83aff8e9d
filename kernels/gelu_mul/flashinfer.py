"""gelu(gate) * up by flashinfer-python. Knows only its call."""

from __future__ import annotations

import flashinfer.activation
from torch import Tensor

__all__ = ("gelu_mul",)


def gelu_mul(x: Tensor) -> Tensor:
    """See reference.py."""
    return flashinfer.activation.gelu_tanh_and_mul(x)
