"""A dense product by a weight by the compiled panels.cpp. A row's bits depend on it alone."""

from __future__ import annotations

from torch import Tensor

from tokenwire.kernels.panels import plain_linear

__all__ = ("matmul",)


def matmul(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """See reference.py. On the CPU, float32 or bfloat16."""
    return plain_linear(x, w, bias)
