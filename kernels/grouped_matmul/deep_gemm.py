"""The masked form by sgl-deep-gemm. Knows only its call."""

from __future__ import annotations

import deep_gemm
from torch import Tensor

__all__ = ("grouped_matmul_masked",)


def grouped_matmul_masked(x: Tensor, w: Tensor, counts: Tensor, y: Tensor) -> None:
    """See reference.py. Why the capacity as the expected rows: the host reads no count, and the
    number only guides the choice of tiles."""
    deep_gemm.m_grouped_bf16_gemm_nt_masked(x, w, y, counts, x.shape[1])
