"""Rotary position embedding of queries and keys, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FLASHINFER, triton_reason, vendor_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
VENDOR_HEADS = (64, 128, 256, 512)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.rope.reference import rope

    return rope


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.rope.triton import rope

    return rope


def _flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.rope.flashinfer import rope

    return rope


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import rope

    return rope


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.rows import rows_reason

    return rows_reason(signature)


def _vendor(signature: Signature) -> str:
    if signature.head_dim not in VENDOR_HEADS:
        return f"flashinfer-python turns no heads of {signature.head_dim}"
    return vendor_reason(*FLASHINFER, signature)


OPS = (
    Op(
        "rope",
        (
            Implementation(REFERENCE, _reference, traits=FAST),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
            Implementation("flashinfer", _flashinfer, _vendor, FAST, 10),
        ),
    ),
)
