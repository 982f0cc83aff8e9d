"""Paged causal attention: prefill (any number of queries a sequence) and decode (one)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import cpu_reason

__all__ = ("OPS",)


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.attention.reference import attention

    return attention


def _cpu_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.attention.cpu import attention_prefill

    return attention_prefill


def _cpu_decode() -> Callable[..., Any]:
    from tokenwire.kernels.attention.cpu import attention_decode

    return attention_decode


def _native_decode() -> Callable[..., Any]:
    from tokenwire.kernels.attention.native import attention_decode

    return attention_decode


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.attention.native import KINDS, SOURCE, WIDTH
    from tokenwire.kernels.native import compiler_reason

    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in KINDS or signature.cache_dtype != signature.dtype:
        return "takes activations and a cache of one dtype, float32 or bfloat16"
    if signature.head_dim % WIDTH:
        return f"takes heads of a multiple of {WIDTH}, not {signature.head_dim}"
    return compiler_reason(SOURCE)


_PADDED = Traits(batch_invariant=False)

OPS = (
    Op(
        "attention_prefill",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu", _cpu_prefill, cpu_reason, priority=10),
        ),
    ),
    Op(
        "attention_decode",
        (
            Implementation(REFERENCE, _reference),
            Implementation("cpu", _cpu_decode, cpu_reason, _PADDED, priority=10),
            Implementation("cpu_native", _native_decode, _compiled, priority=15),
        ),
    ),
)
