"""MLA on the CPU by torch's products, in float32, a sequence at a time.

Why not a batch at once: it would be padded to the longest, and its entries copied; and a sequence's
bits do not hang on its company so.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("mla_decode", "mla_prefill")

NEVER = float("-inf")
ROWS = 256
"""Queries whose scores are held at once."""


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """See reference.py."""
    out = torch.zeros((*q.shape[:2], value_dim), dtype=torch.float32)
    for index, length in enumerate(batch.kv_lens.tolist()):
        if length:
            keys = _entries(cache, batch, index, length, k_scale)
            weights = torch.softmax((q[index].float() * scale) @ keys.T, -1)
            torch.mm(weights, keys[:, :value_dim], out=out[index])
    return out.to(q.dtype)


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
    """See reference.py."""
    (heads, key, latent), value = w_uk.shape, w_uv.shape[1]
    out = q.new_empty(q.shape[0], heads, value)
    up = torch.cat((w_uk, w_uv), 1).float().view(-1, latent)
    starts = batch.cu_q.tolist()
    for index, length in enumerate(batch.kv_lens.tolist()):
        start, end = starts[index], starts[index + 1]
        if end > start and length:
            held = _entries(cache, batch, index, length, k_scale)
            expanded = (held[:, :latent] @ up.T).view(length, heads, -1).transpose(0, 1)
            keys, values = expanded.split((key, value), -1)
            rows = q[start:end].float().transpose(0, 1) * scale
            mixed = _attended(rows, keys, held[:, latent:], values)
            out[start:end] = mixed.transpose(0, 1).to(q.dtype)
        elif end > start:
            out[start:end] = 0
    out[starts[-1] :] = 0
    return out


def _attended(q: Tensor, keys: Tensor, rotated: Tensor, values: Tensor) -> Tensor:
    """q [H, n, Dn + R] already scaled, of the last n of the L positions; keys [H, L, Dn], rotated
    [L, R], values [H, L, Dv] -> [H, n, Dv]. Some queries at a time, hidden keys left out."""
    queries, length, width = q.shape[1], keys.shape[1], keys.shape[2]
    out = q.new_empty(q.shape[0], queries, values.shape[2])
    for begin in range(0, queries, ROWS):
        rows = q[:, begin : begin + ROWS]
        end = length - queries + begin + rows.shape[1]
        turned = rows[..., width:] @ rotated[:end].T
        scores = torch.baddbmm(turned, rows[..., :width], keys[:, :end].transpose(1, 2))
        scores += torch.full(scores.shape[1:], NEVER).triu_(end - rows.shape[1] + 1)
        out[:, begin : begin + ROWS] = torch.softmax(scores, -1) @ values[:, :end]
    return out


def _entries(
    cache: Tensor, batch: AttentionBatch, index: int, length: int, k_scale: float
) -> Tensor:
    """[length, W] float32: a view of the cache where the blocks follow one another."""
    blocks = batch.block_table[index, : -(-length // batch.block_size)]
    ids = blocks.tolist()
    first, last = ids[0], ids[-1]
    follow = ids == list(range(first, last + 1))
    rows = cache[first : last + 1] if follow else cache[blocks.long()]
    held = rows.flatten(0, 2)[:length].float()
    return held if k_scale == 1.0 else held * k_scale
