"""Attention over a compressed cache (MLA): its writes, absorbed decode, unabsorbed prefill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FP8, cpu_reason, fp8_reason, triton_reason

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
BATCHED = Traits(batch_invariant=False)
LARGEST = 576
"""Numbers of an entry, C + R, whose sums the kernels hold in registers."""


def _write() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_write

    return mla_write


def _triton_write() -> Callable[..., Any]:
    from tokenwire.kernels.mla.triton import mla_write

    return mla_write


def _decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_decode

    return mla_decode


def _cpu_decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.cpu import mla_decode

    return mla_decode


def _triton_decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.triton import mla_decode

    return mla_decode


def _prefill() -> Callable[..., Any]:
    from tokenwire.kernels.mla.reference import mla_prefill

    return mla_prefill


def _cpu_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.mla.cpu import mla_prefill

    return mla_prefill


def _triton_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.mla.triton import mla_prefill

    return mla_prefill


def _written(signature: Signature) -> str:
    if signature.cache_dtype == FP8:
        return fp8_reason(signature)
    if signature.cache_dtype != signature.dtype:
        return "takes a cache of the activations' dtype or of float8_e4m3fn"
    return triton_reason(signature)


def _attended(signature: Signature) -> str:
    if signature.head_dim > LARGEST:
        return f"takes entries of up to {LARGEST} numbers, not {signature.head_dim}"
    return _written(signature)


OPS = (
    Op(
        "mla_write",
        (
            Implementation(REFERENCE, _write),
            Implementation("triton", _triton_write, _written, FAST, 20),
        ),
    ),
    Op(
        "mla_decode",
        (
            Implementation(REFERENCE, _decode),
            Implementation("cpu", _cpu_decode, cpu_reason, BATCHED, 10),
            Implementation("triton", _triton_decode, _attended, FAST, 20),
        ),
    ),
    Op(
        "mla_prefill",
        (
            Implementation(REFERENCE, _prefill),
            Implementation("cpu", _cpu_prefill, cpu_reason, priority=10),
            Implementation("triton", _triton_prefill, _attended, FAST, 20),
        ),
    ),
)
