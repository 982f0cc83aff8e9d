"""Every expert's rows by its own weight: rows end to end (contiguous), or room for each (masked).

sgl-deep-gemm has the masked form alone: its contiguous one wants each expert's rows to begin at a
multiple of 128, which would pad a step of few tokens many times over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import cpu_reason, triton_reason, vendor_reason

__all__ = ("DEEP_GEMM", "OPS")

FAST = Traits(graph_safe=True)
MANY = Traits(batch_invariant=False)
"""torch's product of a row may change its bits with the number of rows."""
DEEP_GEMM = ("sgl-deep-gemm", "deep_gemm")
"""Its name on PyPI and its module."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.reference import grouped_matmul

    return grouped_matmul


def _cpu() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.cpu import grouped_matmul

    return grouped_matmul


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.panels import plain_grouped

    return plain_grouped


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.panels import plain_reason

    return plain_reason(signature)


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.triton import grouped_matmul

    return grouped_matmul


def _masked_reference() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.reference import grouped_matmul_masked

    return grouped_matmul_masked


def _masked_cpu() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.cpu import grouped_matmul_masked

    return grouped_matmul_masked


def _masked_native() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.native import grouped_matmul_masked

    return grouped_matmul_masked


def _masked_triton() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.triton import grouped_matmul_masked

    return grouped_matmul_masked


def _masked_deep_gemm() -> Callable[..., Any]:
    from tokenwire.kernels.grouped_matmul.deep_gemm import grouped_matmul_masked

    return grouped_matmul_masked


def _vendor(signature: Signature) -> str:
    return vendor_reason(*DEEP_GEMM, signature, dtypes=(torch.bfloat16,), minimum=(9, 0))


OPS = (
    Op(
        "grouped_matmul",
        (
            Implementation(REFERENCE, _reference, traits=MANY),
            Implementation("cpu_native", _native, _compiled, Traits(), 5),
            Implementation("cpu", _cpu, cpu_reason, MANY, 10),
            Implementation("triton", _triton, triton_reason, FAST, 20),
        ),
    ),
    Op(
        "grouped_matmul_masked",
        (
            Implementation(REFERENCE, _masked_reference, traits=MANY),
            Implementation("cpu_native", _masked_native, _compiled, Traits(), 5),
            Implementation("cpu", _masked_cpu, cpu_reason, MANY, 10),
            Implementation("triton", _masked_triton, triton_reason, FAST, 20),
            Implementation("deep_gemm", _masked_deep_gemm, _vendor, FAST, 10),
        ),
    ),
)
