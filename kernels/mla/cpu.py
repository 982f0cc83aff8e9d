"""MLA on the CPU by torch's products, in float32: decode of a whole batch at once, prefill of a
sequence at a time."""

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
    """See reference.py. All sequences padded to the longest."""
    size = batch.block_size
    table = batch.block_table[:, : max(1, -(-batch.max_kv // size))].long()
    hidden = torch.arange(table.shape[1] * size)[None, :] >= batch.kv_lens[:, None]
    # Why: what no sequence owns may hold NaN, and nothing times NaN is NaN.
    keys = _wide(cache[table].flatten(1, 3), k_scale).masked_fill_(hidden[:, :, None], 0.0)
    scores = (q.float() * scale) @ keys.transpose(1, 2)
    weights = torch.softmax(scores.masked_fill_(hidden[:, None, :], NEVER), -1)
    out = weights @ keys[:, :, :value_dim]
    return out.masked_fill_((batch.kv_lens == 0)[:, None, None], 0.0).to(q.dtype)


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
            blocks = batch.block_table[index, : -(-length // batch.block_size)].long()
            held = _wide(cache[blocks].flatten(0, 2)[:length], k_scale)
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


def _wide(entries: Tensor, k_scale: float) -> Tensor:
    return entries.float() if k_scale == 1.0 else entries.float() * k_scale
