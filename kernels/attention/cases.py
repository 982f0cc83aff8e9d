"""Attention to prove and to measure: block edges, windows, odd groups, 8-bit caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES", "batch_of", "paged", "reordered", "rows_of")

PREFILLS = ((0, 0), (17, 17), (1, 9), (2, 0), (7, 40))
DECODES = ((1, 0), (1, 17), (1, 300))
BLOCK = 16


def paged(lengths: Sequence[tuple[int, int]], *, block_size: int = BLOCK) -> AttentionBatch:
    """Of (q_len, kv_len) a sequence: their blocks mixed, block 0 kept free."""
    counts = [-(-length // block_size) for _, length in lengths]
    order = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(0)).int() + 1
    table = torch.zeros(len(lengths), max(counts) + 1, dtype=torch.int32)
    taken = 0
    for row, count in enumerate(counts):
        table[row, :count] = order[taken : taken + count]
        taken += count
    queries = torch.tensor([0, *(count for count, _ in lengths)])
    return AttentionBatch(
        cu_q=queries.cumsum(0).int(),
        kv_lens=torch.tensor([length for _, length in lengths], dtype=torch.int32),
        block_table=table,
        block_size=block_size,
        max_q=max(count for count, _ in lengths),
        max_kv=max(length for _, length in lengths),
    )


def _arguments(lengths: Sequence[tuple[int, int]], signature: Signature) -> Arguments:
    """Slots that no sequence owns hold NaN."""
    size, head = signature.block_size, signature.head_dim
    batch = paged(lengths, block_size=size)
    blocks = int(batch.block_table.max()) + 1
    caches = [noise(blocks, size, signature.kv_heads, head, seed=seed) for seed in (1, 2)]
    owned = torch.zeros(blocks, size, dtype=torch.bool)
    for row, (_, length) in enumerate(lengths):
        places = torch.arange(length)
        owned[batch.block_table[row, places // size].long(), places % size] = True
    k, v = (cache.masked_fill(~owned[:, :, None, None], float("nan")) for cache in caches)
    q = noise(int(batch.cu_q[-1]), signature.heads, head, dtype=signature.dtype)
    dtype = signature.cache_dtype
    return q, k.to(dtype), v.to(dtype), batch, head**-0.5


def batch_of(arguments: Arguments) -> AttentionBatch:
    """Raises LookupError."""
    for value in arguments:
        if isinstance(value, AttentionBatch):
            return value
    raise LookupError("no AttentionBatch among the arguments")


def reordered(arguments: Arguments, _: Tensor) -> Arguments:
    """The sequences from last to first, of an op whose first argument is q. Why no order is taken:
    it is one of q's rows."""
    batch = batch_of(arguments)
    order = _backwards(batch)
    counts = batch.cu_q.diff()[order]
    moved = replace(
        batch,
        cu_q=torch.cat((counts.new_zeros(1), counts)).cumsum(0).int(),
        kv_lens=batch.kv_lens[order],
        block_table=batch.block_table[order],
    )
    q = arguments[0][rows_of(arguments, order)].clone()
    return q, *(moved if value is batch else value for value in arguments[1:])


def rows_of(arguments: Arguments, _: Tensor) -> Tensor:
    """The rows of q in that order of the sequences."""
    batch = batch_of(arguments)
    starts = batch.cu_q.tolist()
    rows = [torch.arange(starts[i], starts[i + 1]) for i in _backwards(batch).tolist()]
    return torch.cat(rows)


def _backwards(batch: AttentionBatch) -> Tensor:
    return torch.arange(batch.kv_lens.shape[0] - 1, -1, -1)


def _case(
    name: str, lengths: Sequence[tuple[int, int]], signature: Signature, **keywords: Any
) -> Case:
    floats = "/".join(
        str(one).removeprefix("torch.") for one in (signature.dtype, signature.cache_dtype)
    )
    return Case(
        f"{floats} {name}",
        signature,
        partial(_arguments, lengths, signature),
        keywords=keywords,
        permute=reordered,
        order_of=rows_of,
    )


def _shape(heads: int, kv_heads: int, head: int, block_size: int = BLOCK, **more: Any) -> Signature:
    return Signature(heads=heads, kv_heads=kv_heads, head_dim=head, block_size=block_size, **more)


def _cases(lengths: Sequence[tuple[int, int]]) -> tuple[Case, ...]:
    sinks = torch.tensor([0.5, -30.0, 3.0, 40.0])
    plain = [_case("4:2 heads of 64", lengths, _shape(4, 2, 64, dtype=dtype)) for dtype in FLOATS]
    return (
        *plain,
        _case("9:3 heads of 24, blocks of 1", lengths, _shape(9, 3, 24, 1)),
        _case("8:1 heads of 128", lengths, _shape(8, 1, 128)),
        _case("window 7", lengths, _shape(4, 2, 16), window=7),
        _case("window 300", lengths, _shape(4, 2, 16), window=300),
        _case("softcap", lengths, _shape(4, 2, 16), softcap=2.0),
        _case(
            "window, softcap, sinks",
            lengths,
            _shape(4, 2, 32),
            window=270,
            softcap=3.0,
            sinks=sinks,
        ),
        _case(
            "scaled",
            lengths,
            _shape(4, 2, 32, dtype=torch.bfloat16, kv_dtype=FP8),
            k_scale=0.5,
            v_scale=2.0,
        ),
    )


def _bench(queries: int, length: int, sequences: int) -> Bench:
    signature = _shape(32, 8, 128, dtype=torch.bfloat16)

    def make(device: torch.device) -> Arguments:
        batch = paged([(queries, length)] * sequences)
        blocks = int(batch.block_table.max()) + 1
        caches = torch.randn(2, blocks, BLOCK, 8, 128, device=device, dtype=torch.bfloat16)
        q = torch.randn(queries * sequences, 32, 128, device=device, dtype=torch.bfloat16)
        there = AttentionBatch(
            batch.cu_q.to(device),
            batch.kv_lens.to(device),
            batch.block_table.to(device),
            batch.block_size,
            batch.max_q,
            batch.max_kv,
        )
        return q, caches[0], caches[1], there, 128**-0.5

    pairs = queries * (length - queries) + queries * (queries + 1) // 2
    moved = sequences * 2 * (length * 2 * 8 * 128 + 2 * queries * 32 * 128)
    name = f"bf16 {sequences} of {queries} queries, {length} keys"
    return Bench(name, signature, make, moved, flops=4 * 32 * 128 * pairs * sequences)


CASES = {"attention_prefill": _cases(PREFILLS), "attention_decode": _cases(DECODES)}
BENCHES = {
    "attention_prefill": (_bench(4096, 4096, 1), _bench(512, 4096, 4)),
    "attention_decode": (_bench(1, 1024, 256), _bench(1, 4096, 64), _bench(1, 32768, 1)),
}
