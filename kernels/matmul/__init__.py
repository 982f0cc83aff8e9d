"""A dense product by a weight: torch's own, which is fastest, and those in which no company changes
a row's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits, any_signature
from tokenwire.kernels.support import HALVES, cpu_reason, multiplies, triton_reason

__all__ = ("OPS",)

STEADY = Traits(graph_safe=True)
FAST = Traits(batch_invariant=False, graph_safe=True)
"""torch takes another kernel, and so another order of the sum, for another number of rows."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.matmul.reference import matmul

    return matmul


def _torch() -> Callable[..., Any]:
    from torch.nn.functional import linear

    found: Callable[..., Any] = linear
    return found


def _widened() -> Callable[..., Any]:
    from tokenwire.kernels.matmul.widened import widened

    return widened


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.matmul.native import matmul

    return matmul


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.matmul.triton import matmul

    return matmul


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.panels import plain_reason

    return plain_reason(signature)


def _narrow(signature: Signature) -> str:
    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in HALVES:
        return "widens bfloat16 or float16"
    return "the CPU multiplies in this dtype" if multiplies(signature.dtype) else ""


OPS = (
    Op(
        "matmul",
        (
            Implementation(REFERENCE, _reference, traits=FAST),
            Implementation("cpu_native", _native, _compiled, Traits(), 5),
            Implementation("triton", _triton, triton_reason, STEADY, 10),
            Implementation("torch", _torch, any_signature, FAST, 20),
            Implementation("cpu_widened", _widened, _narrow, FAST, 25),
        ),
    ),
)
