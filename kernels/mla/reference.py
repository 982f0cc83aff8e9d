"""Attention over a compressed cache (MLA), in torch, one sequence at a time.

Float32 inside, float64 where the queries are.

DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1. A token's entry in the cache is C numbers of a
latent that all heads share and R of a rotated key. Head h's key is (w_uk[h] @ latent, rotated
key), its value w_uv[h] @ latent; a query against such a key is (q @ w_uk[h], rotated query)
against the entry itself, and the values' sum may wait: so a decode reads one entry for all heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("causal", "entries", "mla_decode", "mla_prefill", "mla_write")

NEVER = float("-inf")


def mla_write(latent: Tensor, cache: Tensor, slots: Tensor, k_scale: float = 1.0) -> None:
    """latent [T, W] goes to the cache [N, block_size, 1, W] at slots [T] int64.

    A slot is block * block_size + offset; -1 writes nothing. A cache of float8_e4m3fn gets latent /
    k_scale, saturated; another has latent's dtype, and the scale is not read.
    """
    kept = (slots >= 0).nonzero().squeeze(1)
    slot, size = slots[kept], cache.shape[1]
    block, offset, rows = slot // size, slot % size, latent[kept]
    if cache.dtype == torch.float8_e4m3fn:
        limit = torch.finfo(cache.dtype).max
        quantised = (rows.float() / k_scale).clamp(-limit, limit).to(cache.dtype)
        # Why bytes: torch scatters no 8-bit floats on the CPU.
        cache.view(torch.uint8)[block, offset, 0] = quantised.view(torch.uint8)
    else:
        cache[block, offset, 0] = rows.to(cache.dtype)


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """Absorbed queries q [T, H, W], one a sequence, over the cache [N, block_size, 1, W] -> the
    weighted sums of the entries' first `value_dim` numbers [T, H, value_dim], in q's dtype.

    `scale` is that of the scores, 1 / sqrt(Dn + R) times what a model adds. `k_scale`: what stored
    numbers are multiplied by. A sequence of no keys gives zeros.
    """
    out, wide = q.new_zeros(q.shape[0], q.shape[1], value_dim), _inside(q)
    for index, length in enumerate(batch.kv_lens.tolist()):
        if length:
            keys = entries(cache, batch, index, length, k_scale).to(wide)
            weights = torch.softmax(q[index].to(wide) @ keys.T * scale, -1)
            out[index] = (weights @ keys[:, :value_dim]).to(q.dtype)
    return out


def mla_prefill(
    q: Tensor,
    cache: Tensor,
    w_uk: Tensor,
    w_uv: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    k_scale: float = 1.0,
) -> Tensor:
    """Queries q [T, H, Dn + R], not absorbed, over keys and values expanded from the cache
    [N, block_size, 1, C + R] by w_uk [H, Dn, C] and w_uv [H, Dv, C] -> [T, H, Dv], in q's dtype.

    Causal: query i of a sequence of `kv_len` L and n queries sits at position L - n + i, and its
    own entry is already in the cache. Scales and padding as in mla_decode.
    """
    out, wide = q.new_zeros(q.shape[0], q.shape[1], w_uv.shape[1]), _inside(q)
    starts, latent = batch.cu_q.tolist(), w_uk.shape[2]
    for index, length in enumerate(batch.kv_lens.tolist()):
        start, end = starts[index], starts[index + 1]
        if length and end > start:
            held = entries(cache, batch, index, length, k_scale).to(wide)
            compressed, rotated = held[:, :latent], held[:, latent:]
            keys = torch.einsum("lc,hdc->hld", compressed, w_uk.to(wide))
            values = torch.einsum("lc,hdc->hld", compressed, w_uv.to(wide))
            keys = torch.cat((keys, rotated.expand(q.shape[1], -1, -1)), -1)
            scores = q[start:end].to(wide).transpose(0, 1) @ keys.transpose(1, 2) * scale
            scores = scores.masked_fill(~causal(end - start, length, q.device), NEVER)
            mixed = torch.softmax(scores, -1) @ values
            out[start:end] = mixed.transpose(0, 1).to(q.dtype)
    return out


def entries(
    cache: Tensor, batch: AttentionBatch, index: int, length: int, k_scale: float
) -> Tensor:
    """[length, W]: what the cache holds of a sequence, in order; 8-bit floats as float32."""
    positions = torch.arange(length, device=cache.device)
    blocks = batch.block_table[index].long()[positions // batch.block_size]
    slots = blocks * batch.block_size + positions % batch.block_size
    held = cache.flatten(0, 2)[slots]
    return (held if held.dtype == torch.float64 else held.float()) * k_scale


def causal(queries: int, length: int, device: torch.device) -> Tensor:
    """[queries, length] bool: which key each of the last `queries` positions may see."""
    own = torch.arange(length - queries, length, device=device)[:, None]
    return torch.arange(length, device=device)[None, :] <= own


def _inside(q: Tensor) -> torch.dtype:
    return torch.promote_types(q.dtype, torch.float32)
