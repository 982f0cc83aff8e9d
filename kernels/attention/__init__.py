"""Paged causal attention: prefill (any number of queries a sequence) and decode (one)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import FP8, cpu_reason, fp8_reason, triton_reason

__all__ = ("OPS", "compiled_reason")


def _reference() -> Callable[..., Any]:
    from tokenwire.kernels.attention.reference import attention

    return attention


def _cpu_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.attention.cpu import attention_prefill

    return attention_prefill


def _cpu_decode() -> Callable[..., Any]:
    from tokenwire.kernels.attention.cpu import attention_decode

    return attention_decode


def _native_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.attention.native import attention_prefill

    return attention_prefill


def _native_decode() -> Callable[..., Any]:
    from tokenwire.kernels.attention.native import attention_decode

    return attention_decode


def compiled_reason(signature: Signature) -> str:
    """Why decode.cpp cannot serve this signature, or ""."""
    from tokenwire.kernels.attention.native import KINDS, SOURCE, WIDTH
    from tokenwire.kernels.native import compiler_reason

    if reason := cpu_reason(signature):
        return reason
    if signature.dtype not in KINDS or signature.cache_dtype != signature.dtype:
        return "takes activations and a cache of one dtype, float32 or bfloat16"
    if signature.head_dim % WIDTH:
        return f"takes heads of a multiple of {WIDTH}, not {signature.head_dim}"
    return compiler_reason(SOURCE)


def _triton_prefill() -> Callable[..., Any]:
    from tokenwire.kernels.attention.triton import attention_prefill

    return attention_prefill


def _triton_decode() -> Callable[..., Any]:
    from tokenwire.kernels.attention.triton import attention_decode

    return attention_decode


def _triton_steady() -> Callable[..., Any]:
    """Decode by the kernel of prefill: without a split, and to its bits."""
    from tokenwire.kernels.attention.triton import attention_prefill

    return attention_prefill


def _ours(signature: Signature) -> str:
    if signature.head_dim > LARGEST_HEAD:
        return f"takes heads of up to {LARGEST_HEAD}, not {signature.head_dim}"
    if signature.cache_dtype == FP8:
        return fp8_reason(signature)
    if signature.cache_dtype != signature.dtype:
        return "takes a cache of the activations' dtype or of float8_e4m3fn"
    return triton_reason(signature)


def _unadapted() -> Callable[..., Any]:
    raise NotImplementedError("attention by flashinfer-python has no adapter: supports() says so")


def _vendor(signature: Signature) -> str:
    """Its plan reads lengths on the host, outside graphs; our ops have no such step yet."""
    if find_spec("flashinfer") is None:
        return "flashinfer-python is not installed: pip install flashinfer-python"
    return "flashinfer-python's attention needs a plan a step, which the engine does not make"


LARGEST_HEAD = 256
_GRAPHS = Traits(graph_safe=True)
_BATCHED = Traits(batch_invariant=False, token_invariant=False)
_APART = Traits(token_invariant=False)
"""One order of the sums where it is computed with others of its sequence, and another alone."""

OPS = (
    Op(
        "attention_prefill",
        (
            Implementation(REFERENCE, _reference, traits=_APART),
            Implementation("cpu_native", _native_prefill, compiled_reason, priority=5),
            Implementation("cpu", _cpu_prefill, cpu_reason, _APART, priority=10),
            Implementation("triton", _triton_prefill, _ours, _GRAPHS, 20),
            Implementation("flashinfer", _unadapted, _vendor, _BATCHED, 5),
        ),
    ),
    Op(
        "attention_decode",
        (
            Implementation(REFERENCE, _reference, traits=_APART),
            Implementation("cpu", _cpu_decode, cpu_reason, _BATCHED, priority=10),
            Implementation("cpu_native", _native_decode, compiled_reason, priority=15),
            Implementation(
                "triton",
                _triton_decode,
                _ours,
                Traits(graph_safe=True, token_invariant=False),
                20,
            ),
            Implementation("triton_steady", _triton_steady, _ours, _GRAPHS, 4),
            Implementation("flashinfer", _unadapted, _vendor, _BATCHED, 5),
        ),
    ),
)
