"""Writing into the paged KV cache in Triton: a program writes the keys and values of a token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta

__all__ = ("SPECIALISATIONS", "kv_write")


@triton.jit
def kv_write_kernel(
    k, v, k_cache, v_cache, slots, k_scale, v_scale, k_token, k_head, v_token, v_head,
    cache_block, cache_offset, cache_head, BLOCK_SIZE: tl.constexpr, KV_HEADS: tl.constexpr,
    HEAD: tl.constexpr, HEADS: tl.constexpr, WIDTH: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """Both caches have one layout. SCALED: to float8_e4m3fn, divided by the scale, saturated."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    if slot >= 0:
        head = tl.arange(0, HEADS)[:, None]
        column = tl.arange(0, WIDTH)[None, :]
        inside = (head < KV_HEADS) & (column < HEAD)
        to = (slot // BLOCK_SIZE) * cache_block + (slot % BLOCK_SIZE) * cache_offset
        to += head * cache_head + column
        key = tl.load(k + token * k_token + head * k_head + column, mask=inside)
        value = tl.load(v + token * v_token + head * v_head + column, mask=inside)
        if SCALED:
            wide_key = key.to(tl.float32) / k_scale
            wide_value = value.to(tl.float32) / v_scale
            key = tl.minimum(tl.maximum(wide_key, -448.0), 448.0).to(k_cache.dtype.element_ty)
            value = tl.minimum(tl.maximum(wide_value, -448.0), 448.0).to(v_cache.dtype.element_ty)
        tl.store(k_cache + to, key, mask=inside)
        tl.store(v_cache + to, value, mask=inside)


def kv_write(
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> None:
    """See reference.py. Raises ValueError where the two caches differ in layout."""
    if k_cache.stride() != v_cache.stride() or k_cache.stride(3) != 1:
        raise ValueError("kv_write: both caches need one layout, a head's elements side by side")
    tokens, kv_heads, head = k.shape
    if not tokens:
        return
    kv_write_kernel[(tokens,)](
        k, v, k_cache, v_cache, slots, float(k_scale), float(v_scale), k.stride(0), k.stride(1),
        v.stride(0), v.stride(1), k_cache.stride(0), k_cache.stride(1), k_cache.stride(2),
        BLOCK_SIZE=k_cache.shape[1], KV_HEADS=kv_heads, HEAD=head,
        HEADS=triton.next_power_of_2(kv_heads), WIDTH=triton.next_power_of_2(head),
        SCALED=k_cache.dtype == torch.float8_e4m3fn,
    )  # fmt: skip


def _launch(kv_heads: int, head: int, cache_dtype: torch.dtype) -> None:
    k, v = meta(32, kv_heads, head), meta(32, kv_heads, head)
    cache = meta(64, 16, kv_heads, head, dtype=cache_dtype)
    kv_write(k, v, cache, cache, meta(32, dtype=torch.int64))


SPECIALISATIONS = (
    Specialisation("bf16 8 heads of 128", lambda: _launch(8, 128, torch.bfloat16)),
    Specialisation("bf16 3 heads of 64", lambda: _launch(3, 64, torch.bfloat16), gated=False),
    Specialisation(
        "fp8 8 heads of 128",
        lambda: _launch(8, 128, torch.float8_e4m3fn),
        minimum=(8, 9),
    ),
)
