"""Where a batch's queries and keys lie: lengths and a block table. Knows nothing of models."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ("AttentionBatch",)


@dataclass(frozen=True)
class AttentionBatch:
    """B sequences over one paged KV cache [N, block_size, Hkv, D].

    Query i of a sequence with `kv_len` L and q_len n sits at position L - n + i. The key of
    position p lies in block `block_table[b, p // block_size]`, at offset `p % block_size`. The
    host's integers save every kernel a read of the device.
    """

    cu_q: Tensor
    """[B + 1] int32: queries of sequence b are rows cu_q[b] .. cu_q[b + 1] of q."""
    kv_lens: Tensor
    """[B] int32: keys of each sequence, those of its queries included; 0: a padding row."""
    block_table: Tensor
    """[B, W] int32: block ids; 0 (the null block) before a window and after the end."""
    block_size: int
    max_q: int
    """At least the longest q_len."""
    max_kv: int
    """At least the longest kv_len."""
    sum_kv: int = 0
    """At least the sum of kv_lens; 0: not known, and B * max_kv is taken."""
