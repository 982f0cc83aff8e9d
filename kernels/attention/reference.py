"""Paged causal attention, one sequence and one dense matrix at a time, in fp32.

What every other implementation is compared with: slow and obvious. The values of keys that no
query sees are never read, so that whatever lies in them cannot matter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("attend", "attention", "merge_states")

NEVER = float("-inf")


def attention(
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
    """Attention of q [T, Hq, D] over the paged cache -> [T, Hq, D], in q's dtype.

    The queries' own keys are already in the cache. `window` w > 0: only keys with
    position_q - position_k < w. `softcap` c > 0: scores become c tanh(score / c). `sinks` [Hq]:
    a score a head that takes probability and gives no value (StreamingLLM, Xiao et al., 2023).
    `k_scale`, `v_scale`: what the stored keys and values are multiplied by (fp8 caches). A
    sequence of no keys gives zeros.
    """
    out, _ = attend(
        q, k_cache, v_cache, batch, scale,
        window=window, softcap=softcap, sinks=sinks, k_scale=k_scale, v_scale=v_scale,
    )  # fmt: skip
    return out


def attend(
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
) -> tuple[Tensor, Tensor]:
    """As `attention`, with the log of the sum of exp(score) [T, Hq] fp32, sinks not counted."""
    out = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], NEVER, device=q.device)
    starts, lengths = batch.cu_q.tolist(), batch.kv_lens.tolist()
    for index, length in enumerate(lengths):
        start, end = starts[index], starts[index + 1]
        if not length or start == end:
            continue
        position = length - (end - start)
        first = max(0, position - window + 1) if window else 0
        slots = _slots(batch, index, first, length)
        k = k_cache.flatten(0, 1)[slots].float() * k_scale
        v = v_cache.flatten(0, 1)[slots].float() * v_scale
        visible = _visible(position, end - start, first, length, window, q.device)
        rows, sums = _dense(q[start:end].float() * scale, k, v, visible, softcap, sinks)
        out[start:end] = rows.to(q.dtype)
        lse[start:end] = sums
    return out, lse


def merge_states(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    """Joins attention over disjoint parts of the keys: outs [S, ..., D] and lses [S, ...] of S
    parts -> (out [..., D], lse [...]), as over all of them. A part of no keys has lse -inf."""
    lse = torch.logsumexp(lses.float(), 0)
    weights = torch.where(lse == NEVER, 0.0, torch.exp(lses.float() - lse))
    parts = torch.where(weights[..., None] == 0, 0.0, outs.float())
    return (weights[..., None] * parts).sum(0).to(outs.dtype), lse


def _slots(batch: AttentionBatch, index: int, first: int, end: int) -> Tensor:
    """The rows of the flattened cache that hold the keys of positions first .. end."""
    positions = torch.arange(first, end, device=batch.block_table.device)
    blocks = batch.block_table[index].long()[positions // batch.block_size]
    return blocks * batch.block_size + positions % batch.block_size


def _visible(
    position: int, queries: int, first: int, length: int, window: int, device: torch.device
) -> Tensor:
    """[queries, length - first] bool: which key each query may see."""
    own = torch.arange(position, position + queries, device=device)[:, None]
    keys = torch.arange(first, length, device=device)[None, :]
    causal = keys <= own
    return causal & (own - keys < window) if window else causal


def _dense(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor, softcap: float, sinks: Tensor | None
) -> tuple[Tensor, Tensor]:
    """q [n, Hq, D] already scaled, k and v [L, Hkv, D] -> ([n, Hq, D], lse [n, Hq])."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("nhd,lhd->nhl", q, k)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~visible[:, None, :], NEVER)
    lse = torch.logsumexp(scores, -1)
    total = lse if sinks is None else torch.logaddexp(lse, sinks.float())
    return torch.einsum("nhl,lhd->nhd", torch.exp(scores - total[..., None]), v), lse
