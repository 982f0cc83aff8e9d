"""Absorbed decode by sgl-flash-mla. Knows only its call.

Why `use_legacy`: since 1.0 the package keeps its dense kernels, those of 9.0, under that name.
"""

from __future__ import annotations

from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("mla_decode",)


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """See reference.py. Entries of 512 and 64 numbers in bfloat16, blocks of 64."""
    import flash_mla

    plan, _ = flash_mla.get_mla_metadata()
    out, _ = flash_mla.flash_mla_with_kvcache(
        q.unsqueeze(1),
        cache,
        batch.block_table,
        batch.kv_lens,
        value_dim,
        plan,
        softmax_scale=scale * k_scale,
        use_legacy=True,
    )
    mixed: Tensor = out.squeeze(1)
    if k_scale != 1.0:
        mixed = mixed * k_scale
    return mixed.masked_fill((batch.kv_lens == 0)[:, None, None], 0.0)
