"""Paged attention in Triton: how the kernels of tiles.py are launched. Knows no op table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tokenwire.kernels.aot.specialisation import Specialisation, meta
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.attention.tiles import (
    attention_decode_kernel,
    attention_merge_kernel,
    attention_prefill_kernel,
)

__all__ = ("SPECIALISATIONS", "SPLIT", "attend", "attention_decode", "attention_prefill")

SPLIT = 256
"""Keys of a program of decode: so that one long sequence fills a GPU. By length alone, for what
occupancy chose would change a row's bits with its company."""
LOG2_E = 1.4426950408889634
TYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


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
    """See reference.attention."""
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(0, dtype=torch.float32, device=q.device)
    _prefill(
        q, k_cache, v_cache, batch, scale, out, lse,
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
    """See reference.attend."""
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    _prefill(
        q, k_cache, v_cache, batch, scale, out, lse,
        window=window, softcap=softcap, sinks=sinks, k_scale=k_scale, v_scale=v_scale,
    )  # fmt: skip
    return out, lse


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
    """See reference.attention; one query a sequence."""
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    rows, heads, head = q.shape
    if not rows:
        return out
    longest = min(batch.max_kv, window) if window else batch.max_kv
    splits = max(1, triton.cdiv(longest, SPLIT))
    kept = rows if splits > 1 else 0
    parts = torch.empty((kept, heads, splits, head), dtype=torch.float32, device=q.device)
    part_lse = torch.empty((kept, heads, splits), dtype=torch.float32, device=q.device)
    shared = _shared(q, k_cache, v_cache, scale, window, softcap, sinks, k_scale)
    group = heads // k_cache.shape[2]
    attention_decode_kernel[(rows, k_cache.shape[2], splits)](
        q, k_cache, v_cache, out, parts, part_lse, batch.kv_lens, batch.block_table,
        out if sinks is None else sinks, q.stride(0), q.stride(1), out.stride(0), out.stride(1),
        k_cache.stride(0), k_cache.stride(1), k_cache.stride(2), batch.block_table.stride(0),
        heads, splits, v_scale=float(v_scale), GROUP=group, BLOCK_SIZE=batch.block_size,
        ROWS=max(16, triton.next_power_of_2(group)), KEYS=_keys(q, k_cache), SPLIT=SPLIT,
        **shared, num_warps=4, num_stages=2,
    )  # fmt: skip
    if splits > 1:
        attention_merge_kernel[(rows, heads)](
            out, parts, part_lse, batch.kv_lens, out if sinks is None else sinks,
            out.stride(0), out.stride(1), heads, splits, window, HEAD=head,
            WIDTH=shared["WIDTH"], SPLIT=SPLIT, WINDOW=window > 0, SINKS=sinks is not None,
            num_warps=2,
        )  # fmt: skip
    return out


def _prefill(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    out: Tensor,
    lse: Tensor,
    *,
    window: int,
    softcap: float,
    sinks: Tensor | None,
    k_scale: float,
    v_scale: float,
) -> None:
    heads, kv_heads = q.shape[1], k_cache.shape[2]
    group, sequences = heads // kv_heads, batch.kv_lens.shape[0]
    rows = max(_rows(q), triton.next_power_of_2(group))
    tiles = triton.cdiv(batch.max_q, rows // group)
    if not (tiles and sequences and q.shape[0]):
        return
    attention_prefill_kernel[(tiles, kv_heads, sequences)](
        q, k_cache, v_cache, out, lse, batch.cu_q, batch.kv_lens, batch.block_table,
        out if sinks is None else sinks, q.stride(0), q.stride(1), out.stride(0), out.stride(1),
        k_cache.stride(0), k_cache.stride(1), k_cache.stride(2), batch.block_table.stride(0),
        heads, v_scale=float(v_scale), GROUP=group, BLOCK_SIZE=batch.block_size, ROWS=rows,
        KEYS=_keys(q, k_cache), LSE=lse.numel() > 0,
        **_shared(q, k_cache, v_cache, scale, window, softcap, sinks, k_scale),
        num_warps=_warps(q, rows), num_stages=2,
    )  # fmt: skip


def _shared(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    scale: float,
    window: int,
    softcap: float,
    sinks: Tensor | None,
    k_scale: float,
) -> Mapping[str, Any]:
    """What both kernels take alike. Raises ValueError for layouts they do not know."""
    if k_cache.stride() != v_cache.stride() or k_cache.stride(3) != 1 or q.stride(2) != 1:
        raise ValueError("attention: a head's elements lie side by side, both caches in one layout")
    factor = scale * k_scale
    return {
        "scale": float(factor if softcap else factor * LOG2_E),
        "softcap": float(softcap),
        "window": int(window),
        "HEAD": q.shape[2],
        "WIDTH": max(16, triton.next_power_of_2(q.shape[2])),
        "WINDOW": window > 0,
        "SOFTCAP": softcap > 0,
        "SINKS": sinks is not None,
        # Why: Triton's interpreter gets products of bfloat16 wrong.
        "DOT": tl.float32 if q.device.type == "cpu" else TYPES[q.dtype],
    }


def _rows(q: Tensor) -> int:
    """Rows of a tile of queries, so that it stays in registers."""
    if q.dtype == torch.float32:
        return 32
    return 128 if 64 < q.shape[2] <= 128 else 64


def _warps(q: Tensor, rows: int) -> int:
    """So that a tile of queries leaves a thread registers for a tile of scores."""
    return 8 if rows * q.shape[2] > 64 * 128 else 4


def _keys(q: Tensor, k_cache: Tensor) -> int:
    """Keys of a tile."""
    return 32 if q.dtype == torch.float32 or q.shape[2] > 128 else 64


def _launch(
    op: Any,
    heads: int,
    kv_heads: int,
    head: int,
    dtype: torch.dtype = torch.bfloat16,
    kv_dtype: torch.dtype | None = None,
    **options: Any,
) -> None:
    count = 32
    table, ints = meta(count, 512, dtype=torch.int32), meta(count + 1, dtype=torch.int32)
    cache = meta(1024, 16, kv_heads, head, dtype=kv_dtype or dtype)
    batch = AttentionBatch(ints, ints[:count], table, 16, 256, 8192)
    q = meta(count, heads, head, dtype=dtype)
    if options.pop("sinks", False):
        options["sinks"] = meta(heads, dtype=dtype)
    op(q, cache, cache, batch, head**-0.5, **options)


FP8 = torch.float8_e4m3fn
SPECIALISATIONS = (
    Specialisation(
        "prefill bf16 heads of 128", lambda: _launch(attention_prefill, 32, 8, 128), wgmma=True
    ),
    Specialisation("prefill bf16 heads of 64", lambda: _launch(attention_prefill, 9, 3, 64)),
    Specialisation(
        "prefill bf16 heads of 256, window",
        lambda: _launch(attention_prefill, 4, 1, 256, window=512),
    ),
    Specialisation(
        "prefill fp8 cache",
        lambda: _launch(attention_prefill, 32, 8, 128, kv_dtype=FP8),
        minimum=(8, 9),
    ),
    Specialisation("decode bf16 heads of 128", lambda: _launch(attention_decode, 32, 8, 128)),
    Specialisation("decode bf16 heads of 64", lambda: _launch(attention_decode, 9, 3, 64)),
    Specialisation(
        "decode bf16 heads of 256, window",
        lambda: _launch(attention_decode, 4, 1, 256, window=512),
    ),
    Specialisation(
        "decode bf16 window, softcap, sinks",
        lambda: _launch(attention_decode, 32, 8, 64, window=512, softcap=50.0, sinks=True),
        gated=False,
    ),
    Specialisation(
        "decode fp8 cache",
        lambda: _launch(attention_decode, 32, 8, 128, kv_dtype=FP8),
        minimum=(8, 9),
    ),
)
