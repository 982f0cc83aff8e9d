"""Every expert's rows by its own weight on a CPU: one product of torch's an expert, no copies.

16-bit weights are widened, an expert at a time, where a CPU has no instructions for them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from tokenwire.kernels.support import multiplies

__all__ = ("grouped_matmul", "grouped_matmul_masked")

FEW = 4
"""Rows up to which widening a weight costs more than it saves."""


def grouped_matmul(x: Tensor, w: Tensor, offsets: Tensor) -> Tensor:
    """See reference.py."""
    y = torch.empty((x.shape[0], w.shape[1]), dtype=x.dtype)
    ends = offsets.tolist()
    for expert, (start, end) in enumerate(pairwise(ends)):
        if end > start:
            _product(x[start:end], w[expert], y[start:end])
    return y


def grouped_matmul_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    """See reference.py."""
    for expert, count in enumerate(counts.tolist()):
        if count:
            _product(x[expert, :count], w[expert], y[expert, :count])


def _product(x: Tensor, w: Tensor, y: Tensor) -> None:
    if x.dtype == torch.float32 or x.shape[0] < FEW or multiplies(x.dtype):
        torch.mm(x, w.t(), out=y)
    else:
        y.copy_(torch.mm(x.float(), w.float().t()))
