"""Every expert's rows by its own weight of 8-bit floats, a scale for each block of 128 x 128: rows
end to end (contiguous), or room for each (masked)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tokenwire.kernels.grouped_matmul import DEEP_GEMM
from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import fp8_reason, vendor_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.reference import fp8_grouped_matmul

    return fp8_grouped_matmul


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.triton import fp8_grouped_matmul

    return fp8_grouped_matmul


def _deep_gemm() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.deep_gemm import fp8_grouped_matmul

    return fp8_grouped_matmul


def _masked_reference() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.reference import fp8_grouped_matmul_masked

    return fp8_grouped_matmul_masked


def _masked_triton() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.triton import fp8_grouped_matmul_masked

    return fp8_grouped_matmul_masked


def _masked_deep_gemm() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_grouped_matmul.deep_gemm import fp8_grouped_matmul_masked

    return fp8_grouped_matmul_masked


def _vendor(signature: Signature) -> str:
    """Why 9.0 alone: from 10.0 on it rounds scales to powers of two, and ours are none."""
    reason = vendor_reason(*DEEP_GEMM, signature, dtypes=(torch.bfloat16,), minimum=(9, 0))
    if not reason and signature.capability != (9, 0):
        return f"{DEEP_GEMM[0]} rounds scales to powers of two but on compute capability 9.0"
    return reason


OPS = (
    Op(
        "fp8_grouped_matmul",
        (
            Implementation(REFERENCE, _reference),
            Implementation("triton", _triton, fp8_reason, FAST, 20),
            Implementation("deep_gemm", _deep_gemm, _vendor, FAST, 10),
        ),
    ),
    Op(
        "fp8_grouped_matmul_masked",
        (
            Implementation(REFERENCE, _masked_reference),
            Implementation("triton", _masked_triton, fp8_reason, FAST, 20),
            Implementation("deep_gemm", _masked_deep_gemm, _vendor, FAST, 10),
        ),
    ),
)
