"""A linear layer whose weights are 8-bit floats, a scale for each block of 128 x 128."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Traits
from tokenwire.kernels.support import fp8_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
LOOSE = Traits(batch_invariant=False, graph_safe=True)
"""torch's kernels may do the last numbers of a tensor in another way than those before them."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_matmul.reference import fp8_matmul

    return fp8_matmul


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.fp8_matmul.triton import fp8_matmul

    return fp8_matmul


OPS = (
    Op(
        "fp8_matmul",
        (
            Implementation(REFERENCE, _reference, traits=LOOSE),
            Implementation("triton", _triton, fp8_reason, FAST, 20),
        ),
    ),
)
