"""RMS norm, alone and fused with the residual sum before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FLASHINFER, triton_reason, vendor_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
LOOSE = Traits(batch_invariant=False, graph_safe=True)
"""torch's kernels may do the last numbers of a tensor in another way than those before them."""


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.reference import rms_norm

    return rms_norm


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.triton import rms_norm

    return rms_norm


def _flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.flashinfer import rms_norm

    return rms_norm


def _add_reference() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.reference import add_rms_norm

    return add_rms_norm


def _add_triton() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.triton import add_rms_norm

    return add_rms_norm


def _add_flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.rms_norm.flashinfer import add_rms_norm

    return add_rms_norm


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import rms_norm

    return rms_norm


def _add_native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import add_rms_norm

    return add_rms_norm


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.rows import rows_reason

    return rows_reason(signature)


def _vendor(signature: Signature) -> str:
    return vendor_reason(*FLASHINFER, signature)


OPS = (
    Op(
        "rms_norm",
        (
            Implementation(REFERENCE, _reference, traits=LOOSE),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, triton_reason, FAST, 20),
            Implementation("flashinfer", _flashinfer, _vendor, FAST, 10),
        ),
    ),
    Op(
        "add_rms_norm",
        (
            Implementation(REFERENCE, _add_reference, traits=LOOSE),
            Implementation("cpu_native", _add_native, _compiled, Traits(), 15),
            Implementation("triton", _add_triton, triton_reason, FAST, 20),
            Implementation("flashinfer", _add_flashinfer, _vendor, FAST, 10),
        ),
    ),
)
