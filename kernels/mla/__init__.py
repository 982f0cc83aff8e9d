"""Attention over a compressed cache (MLA): its writes, absorbed decode, unabsorbed prefill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tokenwire.kernels.op import REFERENCE, Implementation, Op, Signature, Traits
from tokenwire.kernels.support import (
    FLASHINFER,
    FP8,
    cpu_reason,
    fp8_reason,
    triton_reason,
    vendor_reason,
)

__all__ = ("OPS",)

FAST = Traits(graph_safe=True)
BATCHED = Traits(batch_invariant=False, token_invariant=False)
APART = Traits(token_invariant=False)
"""Unabsorbed sums are of other numbers than absorbed ones: a token's bits hang on which is taken.
Who wants them steady absorbs every token, and then torch's products may still hang on a length."""
FAST_APART = Traits(token_invariant=False, graph_safe=True)
FLASH_MLA = ("sgl-flash-mla", "flash_mla")
"""Its name on PyPI and its module."""
VENDORS_ENTRY = 576
"""512 + 64 numbers, the one entry that vendors take."""
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


def _native_decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.native import mla_decode

    return mla_decode


def _compiled(signature: Signature) -> str:
    from tokenwire.kernels.attention import compiled_reason

    return compiled_reason(signature)


def _triton_decode() -> Callable[..., Any]:
    from tokenwire.kernels.mla.triton import mla_decode

    return mla_decode


def _flash_mla() -> Callable[..., Any]:
    from tokenwire.kernels.mla.flash_mla import mla_decode

    return mla_decode


def _flashinfer() -> Callable[..., Any]:
    from tokenwire.kernels.mla.flashinfer import mla_decode

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


def _on_hopper(signature: Signature) -> str:
    return _vendors(FLASH_MLA, signature, major=9, block_sizes=(64,))


def _on_blackwell(signature: Signature) -> str:
    return _vendors(FLASHINFER, signature, major=10, block_sizes=(32, 64))


def _vendors(
    package: tuple[str, str], signature: Signature, *, major: int, block_sizes: tuple[int, ...]
) -> str:
    name = package[0]
    reason = vendor_reason(*package, signature, dtypes=(torch.bfloat16,), minimum=(major, 0))
    if reason:
        return reason
    if signature.capability is not None and signature.capability[0] != major:
        return f"{name} decodes so on compute capability {major}.x alone"
    if signature.cache_dtype != signature.dtype:
        return f"{name} takes a cache of the activations' dtype alone"
    if signature.head_dim != VENDORS_ENTRY:
        return f"{name} takes entries of {VENDORS_ENTRY} numbers, not {signature.head_dim}"
    if signature.block_size not in block_sizes:
        sizes = " or ".join(map(str, block_sizes))
        return f"{name} takes blocks of {sizes} tokens, not {signature.block_size}"
    return ""


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
            Implementation(REFERENCE, _decode, traits=APART),
            Implementation("cpu_native", _native_decode, _compiled, Traits(), 5),
            Implementation("cpu", _cpu_decode, cpu_reason, APART, 10),
            Implementation("triton", _triton_decode, _attended, FAST, 20),
            Implementation("flash_mla", _flash_mla, _on_hopper, BATCHED, 10),
            Implementation("flashinfer", _flashinfer, _on_blackwell, BATCHED, 10),
        ),
    ),
    Op(
        "mla_prefill",
        (
            Implementation(REFERENCE, _prefill, traits=APART),
            Implementation("cpu", _cpu_prefill, cpu_reason, APART, 10),
            Implementation("triton", _triton_prefill, _attended, FAST_APART, 20),
        ),
    ),
)
