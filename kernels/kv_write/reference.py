"""Writing into the paged KV cache in torch."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ("kv_write",)


def kv_write(
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> None:
    """k, v [T, Hkv, D] go to caches [N, block_size, Hkv, D] at slots[T] int64.

    A slot is block * block_size + offset; -1 writes nothing. A cache of float8_e4m3fn gets k /
    k_scale and v / v_scale, saturated; another has k's dtype, and the scales are not read.
    """
    kept = (slots >= 0).nonzero().squeeze(1)
    slot = slots[kept]
    size = k_cache.shape[1]
    block, offset = slot // size, slot % size
    for x, cache, scale in ((k, k_cache, k_scale), (v, v_cache, v_scale)):
        rows = x[kept]
        if cache.dtype == torch.float8_e4m3fn:
            limit = torch.finfo(cache.dtype).max
            quantised = (rows.float() / scale).clamp(-limit, limit).to(cache.dtype)
            # Why bytes: torch scatters no 8-bit floats on the CPU.
            cache.view(torch.uint8)[block, offset] = quantised.view(torch.uint8)
        else:
            cache[block, offset] = rows.to(cache.dtype)
