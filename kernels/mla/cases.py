"""MLA to prove and to measure: block edges, odd sizes, several splits, 8-bit floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.attention.cases import paged, reordered, rows_of
from tokenwire.kernels.cases import Arguments, Bench, Case, noise
from tokenwire.kernels.op import Signature
from tokenwire.kernels.support import FLOATS, FP8

__all__ = ("BENCHES", "CASES")

DECODES = ((1, 0), (1, 17), (1, 300))
MERGED = ((1, 1024), (1, 0), (1, 1100))
PREFILLS = ((0, 0), (17, 17), (1, 9), (2, 0), (7, 70))
NOPE, VALUE = 24, 20
"""Dn and Dv of the cases."""


def _entries(batch: AttentionBatch, width: int, dtype: torch.dtype) -> Tensor:
    """A cache whose slots that no sequence owns hold NaN."""
    size = batch.block_size
    cache = noise(int(batch.block_table.max()) + 1, size, 1, width, seed=1)
    owned = torch.zeros(cache.shape[:2], dtype=torch.bool)
    for row, length in enumerate(batch.kv_lens.tolist()):
        places = torch.arange(length)
        owned[batch.block_table[row, places // size].long(), places % size] = True
    return cache.masked_fill(~owned[:, :, None, None], float("nan")).to(dtype)


def _decode(lengths: Sequence[tuple[int, int]], signature: Signature) -> Arguments:
    batch = paged(lengths, block_size=signature.block_size)
    q = noise(len(lengths), signature.heads, signature.head_dim, dtype=signature.dtype)
    cache = _entries(batch, signature.head_dim, signature.cache_dtype)
    return q, cache, batch, signature.head_dim**-0.5


def _alone(arguments: Arguments, _: Tensor) -> Arguments:
    """Without the last sequence, the one of several splits."""
    q, cache, batch, scale = arguments
    fewer = replace(
        batch,
        cu_q=batch.cu_q[:-1],
        kv_lens=batch.kv_lens[:-1],
        block_table=batch.block_table[:-1].clone(),
        max_kv=int(batch.kv_lens[:-1].max()),
    )
    return q[:-1].clone(), cache, fewer, scale


def _prefill(rotated: int, signature: Signature, *, told: bool) -> Arguments:
    """`told`: the batch says how many keys there are."""
    batch = paged(PREFILLS, block_size=signature.block_size)
    if told:
        batch = replace(batch, sum_kv=int(batch.kv_lens.sum()))
    heads, width, dtype = signature.heads, signature.head_dim, signature.dtype
    q = noise(int(batch.cu_q[-1]), heads, NOPE + rotated, dtype=dtype)
    ups = (noise(heads, each, width - rotated, seed=each) / 4 for each in (NOPE, VALUE))
    cache = _entries(batch, width, signature.cache_dtype)
    return q, cache, *(each.to(dtype) for each in ups), batch, (NOPE + rotated) ** -0.5


def _shape(heads: int, width: int, block_size: int = 16, **more: torch.dtype) -> Signature:
    return Signature(heads=heads, kv_heads=1, head_dim=width, block_size=block_size, **more)


def _name(signature: Signature, told: str) -> str:
    kinds = "/".join(
        str(one).removeprefix("torch.") for one in (signature.dtype, signature.cache_dtype)
    )
    return f"{kinds} {signature.heads} heads, entries of {told}, blocks of {signature.block_size}"


def _decode_case(
    latent: int, signature: Signature, lengths: Sequence[tuple[int, int]] = DECODES
) -> Case:
    return Case(
        _name(signature, f"{latent}+{signature.head_dim - latent}, {lengths[-1][1]} keys"),
        signature,
        partial(_decode, lengths, signature),
        keywords={"value_dim": latent, "k_scale": 0.5 if signature.cache_dtype == FP8 else 1.0},
        permute=reordered,
        order_of=rows_of,
    )


def _prefill_case(rotated: int, signature: Signature, *, told: bool = False) -> Case:
    name = _name(signature, f"{signature.head_dim - rotated}+{rotated}")
    return Case(
        f"{name}, {'told' if told else 'untold'}",
        signature,
        partial(_prefill, rotated, signature, told=told),
        keywords={"k_scale": 0.5 if signature.cache_dtype == FP8 else 1.0},
        permute=reordered,
        order_of=rows_of,
    )


def _write_case(width: int, dtype: torch.dtype, cache_dtype: torch.dtype) -> Case:
    """Within wider rows, as they come from one product; some saturate."""
    signature = _shape(1, width, dtype=dtype, kv_dtype=cache_dtype)

    def make() -> Arguments:
        rows = (noise(5, width + 8) * 112).to(FP8).to(dtype)[:, :width]
        cache = noise(4, 16, 1, width, seed=2).to(cache_dtype)
        return rows, cache, torch.tensor([17, -1, 18, 1, 63]), 0.5

    return Case(_name(signature, str(width)), signature, make, written=(1,), rows=(0, 2), bound=0.0)


def _there(batch: AttentionBatch, device: torch.device) -> AttentionBatch:
    return replace(
        batch,
        cu_q=batch.cu_q.to(device),
        kv_lens=batch.kv_lens.to(device),
        block_table=batch.block_table.to(device),
    )


def _decode_bench(sequences: int, length: int, heads: int) -> Bench:
    signature = _shape(heads, 576, 64, dtype=torch.bfloat16)

    def make(device: torch.device) -> Arguments:
        batch = _there(paged([(1, length)] * sequences, block_size=64), device)
        blocks = sequences * -(-length // 64) + 1
        kind = {"device": device, "dtype": torch.bfloat16}
        cache = torch.randn(blocks, 64, 1, 576, **kind)
        return torch.randn(sequences, heads, 576, **kind), cache, batch, 192**-0.5

    return Bench(
        f"bf16 {sequences} of {length} keys, {heads} heads",
        signature,
        make,
        sequences * (length * 1152 + heads * 1088 * 2),
        keywords={"value_dim": 512},
        flops=2 * heads * 1088 * length * sequences,
    )


def _prefill_bench(queries: int, length: int, heads: int) -> Bench:
    signature = _shape(heads, 576, 64, dtype=torch.bfloat16)

    def make(device: torch.device) -> Arguments:
        batch = _there(replace(paged([(queries, length)], block_size=64), sum_kv=length), device)
        kind = {"device": device, "dtype": torch.bfloat16}
        cache = torch.randn(length // 64 + 2, 64, 1, 576, **kind)
        ups = (torch.randn(heads, 128, 512, **kind) / 22 for _ in range(2))
        return torch.randn(queries, heads, 192, **kind), cache, *ups, batch, 192**-0.5

    pairs = queries * (length - queries) + queries * (queries + 1) // 2
    return Bench(
        f"bf16 {queries} queries, {length} keys, {heads} heads",
        signature,
        make,
        length * 1152 + queries * heads * 320 * 2 + heads * 256 * 512 * 2,
        flops=2 * heads * (320 * pairs + 256 * 512 * length),
    )


def _write_bench(tokens: int) -> Bench:
    def make(device: torch.device) -> Arguments:
        kind = {"device": device, "dtype": torch.bfloat16}
        cache = torch.zeros(tokens // 64, 64, 1, 576, **kind)
        return torch.randn(tokens, 576, **kind), cache, torch.randperm(tokens, device=device)

    moved = tokens * (2 * 576 * 2 + 8)
    return Bench(f"bf16 {tokens} tokens", _shape(1, 576, dtype=torch.bfloat16), make, moved)


EIGHT_BITS = {"dtype": torch.bfloat16, "kv_dtype": FP8}
CASES = {
    "mla_write": (
        *(_write_case(40, dtype, dtype) for dtype in FLOATS),
        _write_case(576, torch.bfloat16, torch.bfloat16),
        _write_case(40, torch.float32, FP8),
        _write_case(40, torch.bfloat16, FP8),
    ),
    "mla_decode": (
        *(_decode_case(64, _shape(4, 80, dtype=dtype)) for dtype in FLOATS),
        _decode_case(16, _shape(3, 24, 1)),
        _decode_case(24, _shape(3, 36, 1)),
        _decode_case(32, _shape(70, 48, dtype=torch.float16)),
        _decode_case(32, _shape(40, 48, **EIGHT_BITS)),
        replace(
            _decode_case(32, _shape(4, 48, dtype=torch.float16), MERGED),
            permute=_alone,
            order_of=lambda *_: torch.arange(2),
        ),
        _decode_case(512, _shape(16, 576, 64, dtype=torch.bfloat16), ((1, 3), (1, 130))),
    ),
    "mla_prefill": (
        *(_prefill_case(16, _shape(2, 80, dtype=dtype)) for dtype in FLOATS),
        _prefill_case(12, _shape(3, 36, 1), told=True),
        _prefill_case(16, _shape(2, 80, **EIGHT_BITS), told=True),
    ),
}
BENCHES = {
    "mla_write": (_write_bench(4096),),
    "mla_decode": (_decode_bench(128, 4989, 128), _decode_bench(1, 4989, 128),
                   _decode_bench(64, 4096, 16)),
    "mla_prefill": (_prefill_bench(4096, 4096, 128), _prefill_bench(2048, 8192, 16)),
}  # fmt: skip
