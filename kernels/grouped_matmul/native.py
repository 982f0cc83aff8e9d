"""Every expert's rows by its own weight by the compiled panels.cpp, an expert at a time."""

from __future__ import annotations

from torch import Tensor

from tokenwire.kernels.panels import plain_linear

__all__ = ("grouped_matmul_masked",)


def grouped_matmul_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    """See reference.py. On the CPU, float32 or bfloat16; a row's bits depend on it alone."""
    for expert, count in enumerate(counts.tolist()):
        if count:
            y[expert, :count] = plain_linear(x[expert, :count], w[expert], None)
