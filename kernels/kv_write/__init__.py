"""Writes keys and values of a batch into the paged cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FLASHINFER, FP8, fp8_reason, triton_reason, vendor_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
VENDOR_HEADS = (64, 128, 256)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.kv_write.reference import kv_write

    return kv_write


def _triton() -> Callable[..., Any]:
    from tokenwire.kernels.kv_write.triton import kv_write

    return kv_write


def _flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.kv_write.flashinfer import kv_write

    return kv_write


def _native() -> Callable[..., Any]:
    from tokenwire.kernels.rows import kv_write

    return kv_write


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.rows import rows_reason

    if signature.cache_dtype != signature.dtype:
        return "copies into a cache of the activations' dtype alone"
    return rows_reason(signature)


def _ours(signature: Signature) -> str:
    if signature.cache_dtype == FP8:
        return fp8_reason(signature)
    return triton_reason(signature)


def _vendor(signature: Signature) -> str:
    if signature.cache_dtype != signature.dtype:
        return "flashinfer-python appends in the cache's own dtype alone"
    if signature.head_dim not in VENDOR_HEADS:
        return f"flashinfer-python appends no heads of {signature.head_dim}"
    return vendor_reason(*FLASHINFER, signature)


OPS = (
    Op(
        "kv_write",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu_native", _native, _compiled, Traits(), 15),
            Implementation("triton", _triton, _ours, FAST, 20),
            Implementation("flashinfer", _flashinfer, _vendor, FAST, 10),
        ),
    ),
)
