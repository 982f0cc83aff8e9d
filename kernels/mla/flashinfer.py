"""Absorbed decode by flashinfer-python's kernels for 10.0, which need no plan. Knows only its call.

Its other kernels plan on the host, a step ahead, and our ops have no such step.
"""

from __future__ import annotations

from functools import lru_cache

import flashinfer.mla
import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("mla_decode",)

NOPE = 128
"""The one head dimension before absorption that it takes."""
WORKSPACE = 128 << 20
"""Bytes that its documentation advises."""


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """See reference.py. Entries of 512 and 64 numbers, blocks of 32 or 64."""
    out: Tensor = flashinfer.mla.trtllm_batch_decode_with_kv_cache_mla(
        query=q.unsqueeze(1),
        kv_cache=cache.transpose(1, 2),
        workspace_buffer=_workspace(q.device),
        qk_nope_head_dim=NOPE,
        kv_lora_rank=value_dim,
        qk_rope_head_dim=q.shape[2] - value_dim,
        block_tables=batch.block_table,
        seq_lens=batch.kv_lens,
        max_seq_len=batch.max_kv,
        bmm1_scale=scale * k_scale,
        bmm2_scale=k_scale,
    )
    mixed = out.view(q.shape[0], q.shape[1], value_dim)
    return mixed.masked_fill((batch.kv_lens == 0)[:, None, None], 0.0)


@lru_cache(maxsize=16)
def _workspace(device: torch.device) -> Tensor:
    """Zeros at first, and the vendor's from then on; one a device, as one stream decodes."""
    return torch.zeros(WORKSPACE, dtype=torch.uint8, device=device)
