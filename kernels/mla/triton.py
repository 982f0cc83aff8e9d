"""MLA in Triton: how the kernels of tiles.py are launched. Knows no op table."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.mla import splits
from tokenwire.kernels.mla.tiles import (
    mla_decode_kernel,
    mla_expand_kernel,
    mla_merge_kernel,
    mla_prefill_kernel,
    mla_write_kernel,
)
from tokenwire.kernels.support import FP8

__all__ = ("SPECIALISATIONS", "mla_decode", "mla_prefill", "mla_write")

WORKSPACE = 256 << 20
"""Bytes of keys and values that prefill expands at once: as many heads as fit, at least one."""
LOG2_E = 1.4426950408889634
TYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


def mla_write(latent: Tensor, cache: Tensor, slots: Tensor, k_scale: float = 1.0) -> None:
    """See reference.py."""
    if cache.stride(3) != 1 or latent.stride(1) != 1:
        raise ValueError("mla_write: an entry's numbers lie side by side, here and in the cache")
    tokens, entry = latent.shape
    if tokens:
        mla_write_kernel[(tokens,)](
            latent, cache, slots, float(k_scale), latent.stride(0), cache.stride(0),
            cache.stride(1), BLOCK_SIZE=cache.shape[1], ENTRY=entry,
            WIDTH=triton.next_power_of_2(entry), SCALED=cache.dtype == FP8,
        )  # fmt: skip


def mla_decode(
    q: Tensor,
    cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    *,
    value_dim: int,
    k_scale: float = 1.0,
) -> Tensor:
    """See reference.py. Some tokens at a time, where sums of parts would take too much room."""
    _checked(q, cache)
    tokens, heads, _ = q.shape
    out = torch.empty((tokens, heads, value_dim), dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    number = splits.splits_of(batch.max_kv, heads, value_dim)
    together = splits.together(tokens, batch.max_kv, heads, value_dim)
    lse = torch.empty((together, heads, number), dtype=torch.float32, device=q.device)
    parts = torch.empty((*lse.shape, value_dim), dtype=lse.dtype, device=q.device)
    for first in range(0, tokens, together):
        some = slice(first, first + together)
        _decode_some(
            q[some], cache, out[some], parts, lse, batch.kv_lens[some], batch.block_table[some],
            scale, k_scale,
        )  # fmt: skip
    return out


def _decode_some(
    q: Tensor,
    cache: Tensor,
    out: Tensor,
    parts: Tensor,
    lse: Tensor,
    kv_lens: Tensor,
    table: Tensor,
    scale: float,
    k_scale: float,
) -> None:
    (tokens, heads, entry), value_dim, number = q.shape, parts.shape[3], parts.shape[2]
    most, rows = splits.most_splits(heads, value_dim), _rows(q, cache)
    wide = triton.next_power_of_2(max(32, value_dim))
    mla_decode_kernel[(triton.cdiv(heads, rows), tokens, number)](
        q, cache, parts, lse, kv_lens, table, q.stride(0), q.stride(1),
        cache.stride(0), cache.stride(1), table.stride(0), number,
        float(scale * k_scale * LOG2_E), float(k_scale), HEADS=heads, LATENT=value_dim,
        ROTATED=entry - value_dim, HALF=wide // 2,
        ROTATED_WIDTH=triton.next_power_of_2(max(16, entry - value_dim)),
        BLOCK_SIZE=cache.shape[1], ROWS=rows, KEYS=_keys(q, cache), SPLIT=splits.SPLIT,
        MOST=most, DOT=_dot(q), num_warps=4 if rows == 16 else 8, num_stages=2,
    )  # fmt: skip
    mla_merge_kernel[(tokens, heads)](
        out, parts, lse, kv_lens, number, HEADS=heads, LATENT=value_dim, WIDTH=wide,
        SPLIT=splits.SPLIT, MOST=most, num_warps=2,
    )  # fmt: skip


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
    """See reference.py. Expands some heads of all sequences, then attends, then the next heads, so
    that no sum is cut by how much fits."""
    _checked(q, cache)
    (heads, key, _), value = w_uk.shape, w_uv.shape[1]
    out = torch.empty((q.shape[0], heads, value), dtype=q.dtype, device=q.device)
    sequences = batch.kv_lens.shape[0]
    held = batch.sum_kv or sequences * batch.max_kv
    if not (out.numel() and batch.max_q and held):
        return out.zero_()
    at_once = WORKSPACE // (held * (key + value) * q.element_size())
    together = min(heads, max(1, at_once))
    k = torch.empty((together, held, key), dtype=q.dtype, device=q.device)
    v = torch.empty((together, held, value), dtype=q.dtype, device=q.device)
    starts = batch.kv_lens.cumsum(0, dtype=torch.int32) - batch.kv_lens
    for first in range(0, heads, together):
        number = min(together, heads - first)
        _expand(cache, w_uk, w_uv, k, v, batch, starts, first, number, k_scale)
        _attend(q, k, v, cache, out, batch, starts, first, number, scale, k_scale)
    return out


def _expand(
    cache: Tensor,
    w_uk: Tensor,
    w_uv: Tensor,
    k: Tensor,
    v: Tensor,
    batch: AttentionBatch,
    starts: Tensor,
    first: int,
    number: int,
    k_scale: float,
) -> None:
    if not (w_uk.is_contiguous() and w_uv.is_contiguous()):
        raise ValueError("mla_prefill: w_uk and w_uv are dense")
    few, rows = k.dtype == torch.float32, _tokens(k)
    grid = (triton.cdiv(batch.max_kv, rows), number, batch.kv_lens.shape[0])
    mla_expand_kernel[grid](
        cache, w_uk, w_uv, k, v, batch.kv_lens, starts, batch.block_table,
        cache.stride(0), cache.stride(1), batch.block_table.stride(0), first, k.shape[1],
        float(k_scale), LATENT=w_uk.shape[2], KEY=k.shape[2], VALUE=v.shape[2],
        KEY_WIDTH=_wide(k), VALUE_WIDTH=_wide(v), BLOCK_SIZE=batch.block_size, ROWS=rows,
        DEPTH=32 if few else 64, DOT=_dot(k), num_warps=4 if few else 8, num_stages=3,
    )  # fmt: skip


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cache: Tensor,
    out: Tensor,
    batch: AttentionBatch,
    starts: Tensor,
    first: int,
    number: int,
    scale: float,
    k_scale: float,
) -> None:
    few, rows = q.dtype == torch.float32, _tokens(q)
    rotated = q.shape[2] - k.shape[2]
    grid = (triton.cdiv(batch.max_q, rows), number, batch.kv_lens.shape[0])
    mla_prefill_kernel[grid](
        q, k, v, cache, out, batch.cu_q, batch.kv_lens, starts, batch.block_table,
        q.stride(0), q.stride(1), out.stride(0), out.stride(1), cache.stride(0), cache.stride(1),
        batch.block_table.stride(0), first, k.shape[1], float(scale * LOG2_E), float(k_scale),
        LATENT=cache.shape[3] - rotated, KEY=k.shape[2], VALUE=v.shape[2], ROTATED=rotated,
        KEY_WIDTH=_wide(k), VALUE_WIDTH=_wide(v),
        ROTATED_WIDTH=triton.next_power_of_2(max(16, rotated)), BLOCK_SIZE=batch.block_size,
        ROWS=rows, KEYS=32 if few else 64, DOT=_dot(q), num_warps=4 if few else 8, num_stages=2,
    )  # fmt: skip


def _checked(q: Tensor, cache: Tensor) -> None:
    """Raises ValueError."""
    if cache.stride(3) != 1 or q.stride(2) != 1:
        raise ValueError("mla: a head's numbers and an entry's lie side by side")


def _rows(q: Tensor, cache: Tensor) -> int:
    """Heads of a tile, so that its sums stay in registers. Why fewer for 8-bit entries and from
    10.0 on: the way of a widened entry through shared memory takes registers, and two sums of 64
    rows do not fit tensor memory beside the scores."""
    if q.dtype == torch.float32:
        return 16
    most = 32 if cache.dtype == FP8 or _arch(q) >= 100 else 64
    fitting: int = triton.next_power_of_2(q.shape[1])
    return min(most, max(16, fitting))


def _keys(q: Tensor, cache: Tensor) -> int:
    """Keys of a tile of decode."""
    return 16 if q.dtype == torch.float32 or cache.dtype == FP8 else 32


def _tokens(x: Tensor) -> int:
    """Of a tile of prefill: as many as leave a thread registers, which before 9.0 hold operands."""
    if x.dtype == torch.float32:
        return 32
    return 128 if _arch(x) >= 90 else 64


def _arch(x: Tensor) -> int:
    """Of the GPU, as 90; 0 in Triton's interpreter."""
    if x.device.type == "cpu":
        return 0
    arch: int = triton.runtime.driver.active.get_current_target().arch
    return arch


def _wide(x: Tensor) -> int:
    wide: int = triton.next_power_of_2(x.shape[2])
    return max(16, wide)


def _dot(x: Tensor) -> tl.dtype:
    """Why: Triton's interpreter gets products of bfloat16 wrong."""
    return tl.float32 if x.device.type == "cpu" else TYPES[x.dtype]


def _batch() -> AttentionBatch:
    table, ints = meta(32, 512, dtype=torch.int32), meta(33, dtype=torch.int32)
    return AttentionBatch(ints, ints[:32], table, 64, 256, 8192, 32 * 4096)


def _write(dtype: torch.dtype) -> None:
    mla_write(meta(32, 576), meta(64, 64, 1, 576, dtype=dtype), meta(32, dtype=torch.int64))


def _decode(heads: int, dtype: torch.dtype = torch.bfloat16) -> None:
    cache = meta(1024, 64, 1, 576, dtype=dtype)
    mla_decode(meta(32, heads, 576), cache, _batch(), 192**-0.5, value_dim=512)


def _prefill(heads: int, dtype: torch.dtype = torch.bfloat16) -> None:
    cache = meta(1024, 64, 1, 576, dtype=dtype)
    up = meta(heads, 128, 512)
    mla_prefill(meta(4096, heads, 192), cache, up, up, _batch(), 192**-0.5)


SPECIALISATIONS = (
    Specialisation("write bf16", lambda: _write(torch.bfloat16)),
    Specialisation("write fp8", lambda: _write(FP8), minimum=(8, 9)),
    Specialisation("decode bf16, 16 heads", lambda: _decode(16)),
    Specialisation("decode bf16, 128 heads", lambda: _decode(128)),
    Specialisation("decode fp8, 128 heads", lambda: _decode(128, FP8), minimum=(8, 9)),
    Specialisation("prefill bf16, 16 heads", lambda: _prefill(16), wgmma=True),
    Specialisation("prefill bf16, 128 heads", lambda: _prefill(128), wgmma=True),
    Specialisation(
        "prefill fp8, 128 heads", lambda: _prefill(128, FP8), minimum=(8, 9), wgmma=True
    ),
)
