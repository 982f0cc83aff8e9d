"""Attention's Triton kernels: tiles of queries against tiles of paged keys. Launches nothing.

The softmax runs along with the keys (Dao et al., FlashAttention, 2022); the heads that share a
key-value head lie side by side in the rows of a tile, so that keys are read once for all of them.
Scores are in units of log 2. Bits of a row depend on its own sequence alone: tiles, splits and
their order follow from lengths and constants.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ("attention_decode_kernel", "attention_merge_kernel", "attention_prefill_kernel")


@triton.jit
def attention_step(
    q, acc, peak, total, key, first, end, position, row_ok, k_cache, v_cache, table,
    block_stride, token_stride, scale, softcap, window, column,
    HEAD: tl.constexpr, BLOCK_SIZE: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    DOT: tl.constexpr,
):  # fmt: skip
    """One tile of keys [K] at positions `key`; those outside first .. end are not read.

    q [M, D], `position` [M]; acc [M, D], peak and total [M] come back.
    """
    there = (key >= first) & (key < end)
    block = tl.load(table + key // BLOCK_SIZE, mask=there, other=0).to(tl.int64)
    start = block * block_stride + (key % BLOCK_SIZE) * token_stride
    place = start[:, None] + column[None, :]
    inside = there[:, None] & (column < HEAD)[None, :]
    k = tl.load(k_cache + place, mask=inside, other=0.0).to(DOT)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    if SOFTCAP:
        bent = scores / softcap
        scores = softcap * 1.4426950408889634 * (2.0 / (1.0 + tl.exp(-2.0 * bent)) - 1.0)
    seen = there[None, :] & (key[None, :] <= position[:, None]) & row_ok[:, None]
    if WINDOW:
        seen = seen & (position[:, None] - key[None, :] < window)
    scores = tl.where(seen, scores, float("-inf"))
    top = tl.maximum(peak, tl.max(scores, 1))
    level = tl.where(top == float("-inf"), 0.0, top)
    weights = tl.exp2(scores - level[:, None])
    shrink = tl.exp2(peak - level)
    total = total * shrink + tl.sum(weights, 1)
    v = tl.load(v_cache + place, mask=inside, other=0.0).to(DOT)
    acc = tl.dot(weights.to(DOT), v, acc * shrink[:, None], input_precision="ieee")
    return acc, top, total


@triton.jit
def attention_finish(acc, peak, total, sinks, head, row_ok, v_scale, SINKS: tl.constexpr):
    """(out [M, D], lse [M] in units of log 2, without sinks); zeros and -inf where no key was."""
    some = total > 0.0
    safe = tl.where(some, total, 1.0)
    lse = tl.where(some, peak + tl.log2(safe), float("-inf"))
    gain = tl.where(some, v_scale / safe, 0.0)
    if SINKS:
        sink = tl.load(sinks + head, mask=row_ok, other=0.0).to(tl.float32) * 1.4426950408889634
        gain = gain / (1.0 + tl.exp2(sink - tl.where(some, lse, 0.0)))
    return acc * gain[:, None], lse


@triton.jit(do_not_specialize=["table_stride", "window"])
def attention_prefill_kernel(
    q, k_cache, v_cache, out, lse, cu_q, kv_lens, table, sinks,
    q_token, q_head, out_token, out_head, block_stride, token_stride, head_stride, table_stride,
    heads, scale, softcap, window, v_scale,
    GROUP: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    SINKS: tl.constexpr, LSE: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """A program: ROWS // GROUP queries of one sequence, all heads of one key-value head."""
    QUERIES: tl.constexpr = ROWS // GROUP
    sequence, kv_head = tl.program_id(2), tl.program_id(1)
    start, stop = tl.load(cu_q + sequence), tl.load(cu_q + sequence + 1)
    length = tl.load(kv_lens + sequence)
    lead = tl.program_id(0) * QUERIES
    if lead < stop - start:
        row = tl.arange(0, ROWS)
        query = lead + row // GROUP
        row_ok = (query < stop - start) & (row < QUERIES * GROUP)
        head = kv_head * GROUP + row % GROUP
        column = tl.arange(0, WIDTH)
        token = (start + query).to(tl.int64)
        inside = row_ok[:, None] & (column < HEAD)[None, :]
        at = q + token[:, None] * q_token + head[:, None] * q_head + column[None, :]
        tile = tl.load(at, mask=inside, other=0.0).to(DOT)
        offset = length - (stop - start)
        position = offset + query
        end = tl.minimum(length, offset + lead + QUERIES)
        first = 0
        if WINDOW:
            first = tl.maximum(0, offset + lead - window + 1)
        acc = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
        peak = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for lowest in range(first // KEYS * KEYS, end, KEYS):
            acc, peak, total = attention_step(
                tile, acc, peak, total, lowest + tl.arange(0, KEYS), first, end, position, row_ok,
                k_cache + kv_head.to(tl.int64) * head_stride,
                v_cache + kv_head.to(tl.int64) * head_stride,
                table + sequence.to(tl.int64) * table_stride, block_stride, token_stride,
                scale, softcap, window, column, HEAD, BLOCK_SIZE, WINDOW, SOFTCAP, DOT,
            )  # fmt: skip
        result, sums = attention_finish(acc, peak, total, sinks, head, row_ok, v_scale, SINKS)
        to = out + token[:, None] * out_token + head[:, None] * out_head + column[None, :]
        tl.store(to, result.to(out.dtype.element_ty), mask=inside)
        if LSE:
            tl.store(lse + token * heads + head, sums * 0.6931471805599453, mask=row_ok)


@triton.jit(do_not_specialize=["table_stride", "splits", "window"])
def attention_decode_kernel(
    q, k_cache, v_cache, out, parts, part_lse, kv_lens, table, sinks,
    q_token, q_head, out_token, out_head, block_stride, token_stride, head_stride, table_stride,
    heads, splits, scale, softcap, window, v_scale,
    GROUP: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, SPLIT: tl.constexpr, WINDOW: tl.constexpr,
    SOFTCAP: tl.constexpr, SINKS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """A program: SPLIT keys of one sequence, all heads of one key-value head.

    The only split of a sequence is its result; several go to parts [B, Hq, splits, D] and
    part_lse [B, Hq, splits] in float32, for attention_merge_kernel.
    """
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(kv_lens + sequence)
    begin = 0
    if WINDOW:
        begin = tl.maximum(0, length - window)
    count = tl.cdiv(length - begin, SPLIT)
    if split < tl.maximum(count, 1):
        row = tl.arange(0, ROWS)
        row_ok = row < GROUP
        head = kv_head * GROUP + row
        column = tl.arange(0, WIDTH)
        token = sequence.to(tl.int64)
        inside = row_ok[:, None] & (column < HEAD)[None, :]
        at = q + token * q_token + head[:, None] * q_head + column[None, :]
        tile = tl.load(at, mask=inside, other=0.0).to(DOT)
        position = tl.full((ROWS,), 0, dtype=tl.int32) + length - 1
        first = begin + split * SPLIT
        end = tl.minimum(length, first + SPLIT)
        acc = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
        peak = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for lowest in range(first, end, KEYS):
            acc, peak, total = attention_step(
                tile, acc, peak, total, lowest + tl.arange(0, KEYS), first, end, position, row_ok,
                k_cache + kv_head.to(tl.int64) * head_stride,
                v_cache + kv_head.to(tl.int64) * head_stride,
                table + token * table_stride, block_stride, token_stride,
                scale, softcap, window, column, HEAD, BLOCK_SIZE, WINDOW, SOFTCAP, DOT,
            )  # fmt: skip
        if count > 1:
            result, sums = attention_finish(acc, peak, total, sinks, head, row_ok, v_scale, False)
            part = (token * heads + head) * splits + split
            tl.store(parts + part[:, None] * HEAD + column[None, :], result, mask=inside)
            tl.store(part_lse + part, sums, mask=row_ok)
        else:
            result, sums = attention_finish(acc, peak, total, sinks, head, row_ok, v_scale, SINKS)
            to = out + token * out_token + head[:, None] * out_head + column[None, :]
            tl.store(to, result.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["splits", "window"])
def attention_merge_kernel(
    out, parts, part_lse, kv_lens, sinks, out_token, out_head, heads, splits, window,
    HEAD: tl.constexpr, WIDTH: tl.constexpr, SPLIT: tl.constexpr, WINDOW: tl.constexpr,
    SINKS: tl.constexpr,
):  # fmt: skip
    """A program: one head of one sequence that has several splits."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    length = tl.load(kv_lens + token)
    if WINDOW:
        length = tl.minimum(length, window)
    count = tl.cdiv(length, SPLIT)
    if count > 1:
        column = tl.arange(0, WIDTH)
        inside = column < HEAD
        part = (token * heads + head) * splits
        peak = tl.load(part_lse + part)
        acc = tl.load(parts + part * HEAD + column, mask=inside, other=0.0)
        total = 1.0
        for split in range(1, count):
            lse = tl.load(part_lse + part + split)
            values = tl.load(parts + (part + split) * HEAD + column, mask=inside, other=0.0)
            top = tl.maximum(peak, lse)
            shrink, weight = tl.exp2(peak - top), tl.exp2(lse - top)
            acc = acc * shrink + values * weight
            total = total * shrink + weight
            peak = top
        gain = 1.0 / total
        if SINKS:
            sink = tl.load(sinks + head).to(tl.float32) * 1.4426950408889634
            gain = gain / (1.0 + tl.exp2(sink - (peak + tl.log2(total))))
        to = out + token * out_token + head * out_head + column
        tl.store(to, (acc * gain).to(out.dtype.element_ty), mask=inside)
