"""Attention by the compiled decode.cpp: hands it addresses and strides, and checks them.

Prefill is decode of as many sequences as there are queries: slower than by other kernels, and to
the bits of decode.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.native import library

__all__ = ("KINDS", "SOURCE", "WIDTH", "attention_decode", "attention_prefill")

SOURCE = Path(__file__).with_name("decode.cpp")
KINDS = {torch.float32: 0, torch.bfloat16: 1}
WIDTH = 8
"""Of a vector in decode.cpp: what a head's dimension must be a multiple of."""


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
    """See reference.attention; one query a sequence, on the CPU, float32 or bfloat16."""
    if not (q.dtype == k_cache.dtype == v_cache.dtype and q.dtype in KINDS):
        raise TypeError(
            "decode.cpp takes q and caches of one dtype, float32 or bfloat16, not "
            f"{q.dtype}, {k_cache.dtype} and {v_cache.dtype}"
        )
    rows, heads, dim = q.shape
    # Why again: it reads and writes whole vectors, and so past the end of what is shorter.
    if dim % WIDTH:
        raise ValueError(f"decode.cpp takes heads of a multiple of {WIDTH} numbers, not {dim}")
    if not (k_cache.is_contiguous() and v_cache.is_contiguous()):
        raise ValueError("decode.cpp takes contiguous caches")
    if q.stride(1) != dim or q.stride(2) != 1:
        q = q.contiguous()
    table, lengths = batch.block_table.contiguous(), batch.kv_lens.contiguous()
    weights = None if sinks is None else sinks.float().contiguous()
    out = torch.empty((rows, heads, dim), dtype=q.dtype)
    _function()(
        KINDS[q.dtype], q.data_ptr(), q.stride(0), k_cache.data_ptr(), v_cache.data_ptr(),
        table.data_ptr(), table.shape[1], lengths.data_ptr(), rows, heads, k_cache.shape[2], dim,
        batch.block_size, window, scale, softcap, k_scale, v_scale,
        None if weights is None else weights.data_ptr(), torch.get_num_threads(), out.data_ptr(),
    )  # fmt: skip
    return out


def attention_prefill(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    **options: Any,
) -> Tensor:
    """See reference.attention; on the CPU, float32 or bfloat16."""
    counts = batch.cu_q.diff()
    tokens = int(batch.cu_q[-1])
    owner = torch.repeat_interleave(counts, output_size=tokens)
    # Why so: query i of n of a sequence of L keys sees L - n + i + 1 of them.
    seen = torch.arange(1, tokens + 1, dtype=torch.int32) - batch.cu_q[1:][owner]
    alone = replace(
        batch,
        cu_q=torch.arange(tokens + 1, dtype=torch.int32),
        kv_lens=(batch.kv_lens[owner] + seen).to(torch.int32),
        block_table=batch.block_table[owner],
        max_q=1,
    )
    out = attention_decode(q[:tokens], k_cache, v_cache, alone, scale, **options)
    if tokens == q.shape[0]:
        return out
    return torch.cat((out, out.new_zeros(q.shape[0] - tokens, *q.shape[1:])))


@lru_cache(maxsize=1)
def _function() -> Any:
    function = library(SOURCE).paged_decode
    address, whole, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    function.argtypes = [
        ctypes.c_int32, address, whole, address, address, address, whole, address,
        *[whole] * 6, *[real] * 4, address, whole, address,
    ]  # fmt: skip
    function.restype = None
    return function
