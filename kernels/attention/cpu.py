"""Attention on the CPU by torch's own kernels, for any dtype. Knows no compiler."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("attention_decode", "attention_prefill")

NEVER = float("-inf")
ROWS = 256
"""Queries of one mask: so that a mask is no square of the context, and hidden keys are not read."""


@dataclass(frozen=True, slots=True)
class _Options:
    scale: float
    window: int
    softcap: float
    sinks: Tensor | None


def attention_prefill(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> Tensor:
    """See reference.attention. One sequence at a time; consecutive blocks are not copied."""
    out = torch.empty(q.shape, dtype=q.dtype)
    starts, lengths = batch.cu_q.tolist(), batch.kv_lens.tolist()
    for index, length in enumerate(lengths):
        start, end = starts[index], starts[index + 1]
        if start == end:
            continue
        if not length:
            out[start:end] = 0
            continue
        position = length - (end - start)
        first = max(0, position - window + 1) if window else 0
        k = _keys(k_cache, batch, index, first, length, q.dtype, k_scale)
        v = _keys(v_cache, batch, index, first, length, q.dtype, v_scale)
        rows = q[start:end].transpose(0, 1)
        options = _Options(scale, window, softcap, sinks)
        out[start:end] = _attended(rows, k, v, options).transpose(0, 1)
    out[starts[-1] :] = 0
    return out


def attention_decode(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> Tensor:
    """See reference.attention; one query a sequence. All sequences at once, padded to the longest:
    for machines without a compiler."""
    rows, heads, dim = q.shape
    kv_heads, size = k_cache.shape[2], batch.block_size
    table = batch.block_table[:, : max(1, -(-batch.max_kv // size))].long()
    positions = torch.arange(table.shape[1] * size)[None, :]
    lengths = batch.kv_lens.long()[:, None]
    hidden = positions >= lengths
    if window:
        hidden |= positions < lengths - window
    k = _wide(k_cache[table].flatten(1, 2), k_scale).permute(0, 2, 3, 1)
    v = _wide(v_cache[table].flatten(1, 2), v_scale).permute(0, 2, 1, 3)
    v = v.masked_fill(hidden[:, None, :, None], 0.0)
    scores = (q.float() * scale).view(rows, kv_heads, heads // kv_heads, dim) @ k
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores.masked_fill_(hidden[:, None, None, :], NEVER)
    if sinks is not None:
        extra = sinks.float().view(1, kv_heads, -1, 1).expand(rows, -1, -1, 1)
        scores = torch.cat((scores, extra), -1)
    weights = torch.softmax(scores, -1)[..., : v.shape[2]]
    out = (weights @ v).view(rows, heads, dim)
    return out.masked_fill(lengths[:, :, None] == 0, 0.0).to(q.dtype)


def _keys(
    cache: Tensor,
    batch: AttentionBatch,
    index: int,
    first: int,
    length: int,
    dtype: torch.dtype,
    scale: float,
) -> Tensor:
    """[Hkv, length - first, D]: a view of the cache where the blocks follow one another."""
    size = batch.block_size
    lead = first // size
    blocks = batch.block_table[index, lead : -(-length // size)]
    ids = blocks.tolist()
    if ids == list(range(ids[0], ids[0] + len(ids))):
        rows = cache[ids[0] : ids[0] + len(ids)]
    else:
        rows = cache.index_select(0, blocks)
    keys = rows.flatten(0, 1)[first - lead * size : length - lead * size].transpose(0, 1)
    if keys.dtype != dtype:
        return (keys.float() * scale).to(dtype)
    return keys if scale == 1.0 else keys * scale


def _wide(keys: Tensor, scale: float) -> Tensor:
    return keys.float() * scale


def _attended(q: Tensor, k: Tensor, v: Tensor, options: _Options) -> Tensor:
    """The queries q [Hq, n, D] are those of the last n of the L keys k, v [Hkv, L, D]."""
    queries, length = q.shape[1], k.shape[1]
    window = options.window
    plain = not options.softcap and options.sinks is None
    if plain and queries == length and (not window or length <= window):
        return scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True, scale=options.scale, enable_gqa=True
        )[0]
    parts = []
    for begin in range(0, queries, ROWS):
        rows = q[:, begin : begin + ROWS]
        own = length - queries + begin
        end = own + rows.shape[1]
        first = max(0, own - window + 1) if window else 0
        places = torch.arange(own - first, end - first)
        keys, values = k[:, first:end], v[:, first:end]
        run = _capped if options.softcap else _fused
        parts.append(run(rows, keys, values, places, options))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _fused(q: Tensor, k: Tensor, v: Tensor, own: Tensor, options: _Options) -> Tensor:
    """own [n]: the place of each query's own key. A sink is one more key of zeros, whose score is
    the mask's, and whose value is zero."""
    mask: Tensor | None = None
    if options.sinks is not None:
        mask = torch.zeros(q.shape[0], own.shape[0], k.shape[1] + 1, dtype=q.dtype)
        mask[..., :-1].masked_fill_(_hidden(own, k.shape[1], options.window), NEVER)
        mask[..., -1] = options.sinks.to(q.dtype)[:, None]
        none = torch.zeros_like(k[:, :1])
        k, v = torch.cat((k, none), 1), torch.cat((v, none), 1)
    elif own.shape[0] > 1:
        mask = ~_hidden(own, k.shape[1], options.window)
    return scaled_dot_product_attention(
        q[None], k[None], v[None], mask, scale=options.scale, enable_gqa=True
    )[0]


def _capped(q: Tensor, k: Tensor, v: Tensor, own: Tensor, options: _Options) -> Tensor:
    """Dense scores in float32: torch's kernel has no softcap."""
    keys, values = _repeated(k, q.shape[0]).float(), _repeated(v, q.shape[0]).float()
    softcap, sinks = options.softcap, options.sinks
    scores = softcap * torch.tanh((q.float() * options.scale) @ keys.transpose(1, 2) / softcap)
    scores.masked_fill_(_hidden(own, keys.shape[1], options.window), NEVER)
    if sinks is not None:
        extra = sinks.float()[:, None, None].expand(-1, own.shape[0], 1)
        scores = torch.cat((scores, extra), -1)
    weights = torch.softmax(scores, -1)[..., : keys.shape[1]]
    return (weights @ values).to(q.dtype)


def _repeated(k: Tensor, heads: int) -> Tensor:
    group = heads // k.shape[0]
    return k if group == 1 else k.repeat_interleave(group, 0)


def _hidden(own: Tensor, length: int, window: int) -> Tensor:
    """[n, length] bool: keys after the query's own, or before its window."""
    keys = torch.arange(length)[None, :]
    hidden = keys > own[:, None]
    return hidden | (own[:, None] - keys >= window) if window else hidden
