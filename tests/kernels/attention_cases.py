"""Paged batches for tests of attention: every slot that must not be read holds NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch

__all__ = ("Case", "dense", "made", "permuted")


@dataclass(frozen=True)
class Case:
    q: Tensor
    k_cache: Tensor
    v_cache: Tensor
    batch: AttentionBatch
    keys: tuple[Tensor, ...]
    """[L, Hkv, D] float64 a sequence, as they stand in the cache."""
    values: tuple[Tensor, ...]
    scale: float

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """(q_len, kv_len) a sequence."""
        counts = self.batch.cu_q.diff().tolist()
        return list(zip(counts, self.batch.kv_lens.tolist(), strict=True))


def made(
    lengths: Sequence[tuple[int, int]],
    *,
    heads: int = 4,
    kv_heads: int = 2,
    dim: int = 32,
    block_size: int = 16,
    dtype: torch.dtype = torch.float32,
    kv_dtype: torch.dtype | None = None,
    window: int = 0,
    seed: int = 0,
) -> Case:
    """Sequences of (q_len, kv_len), their blocks shuffled. Blocks before a window are null."""
    generator = torch.Generator().manual_seed(seed)
    counts = [-(-length // block_size) for _, length in lengths]
    order = (torch.randperm(sum(counts), generator=generator) + 1).tolist()
    cache_dtype = kv_dtype or dtype
    shape = (sum(counts) + 1, block_size, kv_heads, dim)
    k_cache = torch.full(shape, float("nan")).to(cache_dtype)
    v_cache = torch.full(shape, float("nan")).to(cache_dtype)
    table = torch.zeros(len(lengths), max([1, *counts]) + 1, dtype=torch.int32)
    keys, values = [], []
    for row, (queries, length) in enumerate(lengths):
        blocks = [order.pop() for _ in range(counts[row])]
        hidden = max(0, length - queries - window + 1) // block_size if window else 0
        table[row, : len(blocks)] = torch.tensor([0] * hidden + blocks[hidden:])
        for cache, kept in ((k_cache, keys), (v_cache, values)):
            content = torch.randn(length, kv_heads, dim, generator=generator).to(cache_dtype)
            for position in range(hidden * block_size, length):
                block, offset = blocks[position // block_size], position % block_size
                cache[block, offset] = content[position]
            kept.append(content.double())
    total = sum(queries for queries, _ in lengths)
    q = torch.randn(total, heads, dim, generator=generator).to(dtype)
    starts = torch.tensor([0, *(queries for queries, _ in lengths)]).cumsum(0).int()
    batch = AttentionBatch(
        cu_q=starts,
        kv_lens=torch.tensor([length for _, length in lengths], dtype=torch.int32),
        block_table=table,
        block_size=block_size,
        max_q=max([1, *(queries for queries, _ in lengths)]),
        max_kv=max([1, *(length for _, length in lengths)]),
    )
    return Case(q, k_cache, v_cache, batch, tuple(keys), tuple(values), dim**-0.5)


def dense(
    case: Case,
    *,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
) -> Tensor:
    """The same in float64 by another road: no paging, one query at a time, sinks as the
    sigmoid of lse - sink."""
    out = torch.zeros(case.q.shape, dtype=torch.float64)
    row = 0
    for (queries, length), k, v in zip(case.lengths, case.keys, case.values, strict=True):
        for index in range(queries):
            if length:
                end = length - queries + index + 1
                begin = max(0, end - window) if window else 0
                group = case.q.shape[1] // k.shape[1]
                seen = k[begin:end].repeat_interleave(group, 1) * k_scale
                given = v[begin:end].repeat_interleave(group, 1) * v_scale
                scores = (seen * case.q[row].double()).sum(-1) * case.scale
                scores = softcap * torch.tanh(scores / softcap) if softcap else scores
                out[row] = (torch.softmax(scores, 0)[..., None] * given).sum(0)
                if sinks is not None:
                    gate = torch.sigmoid(torch.logsumexp(scores, 0) - sinks.double())
                    out[row] *= gate[:, None]
            row += 1
    return out


def permuted(case: Case, order: Sequence[int]) -> tuple[Case, Tensor]:
    """The sequences in another order, and which old row each new row of q is."""
    starts = case.batch.cu_q.tolist()
    rows = [torch.arange(starts[i], starts[i + 1]) for i in order]
    moved = torch.cat(rows)
    counts = torch.tensor([0, *(len(each) for each in rows)])
    batch = replace(
        case.batch,
        cu_q=counts.cumsum(0).int(),
        kv_lens=case.batch.kv_lens[list(order)],
        block_table=case.batch.block_table[list(order)],
    )
    return replace(case, q=case.q[moved], batch=batch), moved
