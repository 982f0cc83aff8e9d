"""Writing into the paged KV cache by flashinfer-python. Knows only its call.

Strategy: the whole cache is one sequence of all its blocks in order, so that a slot is a position.
The vendor's call skips no row: a row of slot -1 writes back what slot 0 holds, which no other row
of a batch may then name. The engine keeps block 0 for this.
"""

from __future__ import annotations

import flashinfer.page
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
    """See reference.py. The cache has k's dtype; the scales are not read."""
    blocks, size = k_cache.shape[:2]
    skipped = (slots < 0)[:, None, None]
    numbers = {"dtype": torch.int32, "device": k.device}
    flashinfer.page.append_paged_kv_cache(
        append_key=torch.where(skipped, k_cache[0, 0], k),
        append_value=torch.where(skipped, v_cache[0, 0], v),
        batch_indices=torch.zeros(k.shape[0], **numbers),
        positions=slots.clamp_min(0).int(),
        paged_kv_cache=(k_cache, v_cache),
        kv_indices=torch.arange(blocks, **numbers),
        kv_indptr=torch.arange(2, **numbers) * blocks,
        kv_last_page_len=torch.full((1,), size, **numbers),
        kv_layout="NHD",
    )
