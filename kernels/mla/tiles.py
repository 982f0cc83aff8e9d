"""MLA's Triton kernels: writes, decode by latents, expansion and prefill. Launches nothing.

The softmax runs along with the keys (Dao et al., FlashAttention, 2022), scores in units of log 2.
Bits of a row depend on its own sequence alone: tiles, splits and their order follow from lengths
and constants.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tokenwire.kernels.attention.tiles import attention_finish

__all__ = ("mla_decode_kernel", "mla_expand_kernel", "mla_prefill_kernel", "mla_write_kernel")


@triton.jit
def mla_write_kernel(
    latent, cache, slots, k_scale, latent_token, cache_block, cache_offset,
    BLOCK_SIZE: tl.constexpr, ENTRY: tl.constexpr, WIDTH: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """A program writes a token's entry. SCALED: to float8_e4m3fn, divided, saturated."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    if slot >= 0:
        column = tl.arange(0, WIDTH)
        inside = column < ENTRY
        entry = tl.load(latent + token * latent_token + column, mask=inside)
        if SCALED:
            wide = entry.to(tl.float32) / k_scale
            entry = tl.minimum(tl.maximum(wide, -448.0), 448.0).to(cache.dtype.element_ty)
        to = (slot // BLOCK_SIZE) * cache_block + (slot % BLOCK_SIZE) * cache_offset
        tl.store(cache + to + column, entry, mask=inside)


@triton.jit
def mla_places(table, key, block_stride, token_stride, BLOCK_SIZE: tl.constexpr):
    """Where the entries of the positions `key` [K] begin in the cache."""
    # Why unsigned: a signed quotient takes registers that decode has not.
    key = key.to(tl.uint32)
    block = tl.load(table + key // BLOCK_SIZE).to(tl.int64)
    return block * block_stride + (key % BLOCK_SIZE) * token_stride


@triton.jit
def mla_numbers(row, column, END: tl.constexpr, COLUMNS: tl.constexpr):
    """The numbers at `column`, below COLUMNS, from where `row` [M] points; zeros from END on."""
    at = row[:, None] + column[None, :]
    if END >= COLUMNS:
        numbers = tl.load(at)
    else:
        numbers = tl.load(at, mask=(column < END)[None, :], other=0.0)
    return numbers


@triton.jit
def mla_weights(scores, peak, total):
    """(weights [M, K], what shrinks the sum so far [M], its new peak and total): one step of a
    softmax; hidden scores are -inf."""
    top = tl.maximum(peak, tl.max(scores, 1))
    level = tl.where(top == float("-inf"), 0.0, top)
    weights = tl.exp2(scores - level[:, None])
    shrink = tl.exp2(peak - level)
    return weights, shrink, top, total * shrink + tl.sum(weights, 1)


@triton.jit
def mla_part(length, SPLIT: tl.constexpr, MOST: tl.constexpr):
    """Keys of a part: SPLIT of them, or the multiple of it that makes no more than MOST parts."""
    return tl.maximum(tl.cdiv(length, SPLIT * MOST), 1) * SPLIT


@triton.jit(do_not_specialize=["table_stride", "splits"])
def mla_decode_kernel(
    q, cache, parts, lse, kv_lens, table,
    q_token, q_head, block_stride, token_stride, table_stride, splits, scale, v_scale,
    HEADS: tl.constexpr, LATENT: tl.constexpr, ROTATED: tl.constexpr, HALF: tl.constexpr,
    ROTATED_WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr,
    KEYS: tl.constexpr, SPLIT: tl.constexpr, MOST: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """A program: a part of one sequence's keys for ROWS heads. Entries are read once, as keys and
    as values; in two halves, so that the sums leave registers for what writes them.

    The sums go to parts [B, H, splits, C], their scale to lse [B, H, splits], in float32, for
    mla_merge_kernel. Why not to the result where there is one split: the way there takes registers
    that are not left, and a graph, made for long sequences, has several.
    """
    sequence, split = tl.program_id(1).to(tl.int64), tl.program_id(2)
    length = tl.load(kv_lens + sequence)
    part_keys = mla_part(length, SPLIT, MOST)
    count = tl.cdiv(length, part_keys)
    if split < tl.maximum(count, 1):
        head = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        near, turn = tl.arange(0, HALF), tl.arange(0, ROTATED_WIDTH)
        far = HALF + near
        # Why no masks: what lies past the edge is read from inside and counts for nothing.
        row = q + sequence * q_token + tl.minimum(head, HEADS - 1) * q_head
        q_near = mla_numbers(row, near, LATENT, HALF).to(DOT)
        q_far = mla_numbers(row, far, LATENT, 2 * HALF).to(DOT)
        q_turn = mla_numbers(row + LATENT, turn, ROTATED, ROTATED_WIDTH).to(DOT)
        first = split * part_keys
        end = tl.minimum(length, first + part_keys)
        acc_near = tl.zeros((ROWS, HALF), dtype=tl.float32)
        acc_far = tl.zeros((ROWS, HALF), dtype=tl.float32)
        peak = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for lowest in range(first, end, KEYS):
            key = lowest + tl.arange(0, KEYS)
            entry = cache + mla_places(
                table + sequence * table_stride, tl.minimum(key, end - 1), block_stride,
                token_stride, BLOCK_SIZE,
            )  # fmt: skip
            k_near = mla_numbers(entry, near, LATENT, HALF).to(DOT)
            k_far = mla_numbers(entry, far, LATENT, 2 * HALF).to(DOT)
            k_turn = mla_numbers(entry + LATENT, turn, ROTATED, ROTATED_WIDTH).to(DOT)
            scores = tl.dot(q_near, tl.trans(k_near), input_precision="ieee")
            scores = tl.dot(q_far, tl.trans(k_far), scores, input_precision="ieee")
            scores = tl.dot(q_turn, tl.trans(k_turn), scores, input_precision="ieee")
            scores = tl.where((key < end)[None, :], scores * scale, float("-inf"))
            weights, shrink, peak, total = mla_weights(scores, peak, total)
            acc_near *= shrink[:, None]
            acc_far *= shrink[:, None]
            acc_near = tl.dot(weights.to(DOT), k_near, acc_near, input_precision="ieee")
            acc_far = tl.dot(weights.to(DOT), k_far, acc_far, input_precision="ieee")
        # Without keys the sums are zeros.
        safe = tl.where(total > 0.0, total, 1.0)
        gain = (v_scale / safe)[:, None]
        part = (sequence * HEADS + head) * splits + split
        to = parts + part[:, None] * LATENT
        inside = (head < HEADS)[:, None] & (near < LATENT)[None, :]
        tl.store(to + near[None, :], acc_near * gain, mask=inside)
        inside = (head < HEADS)[:, None] & (far < LATENT)[None, :]
        tl.store(to + far[None, :], acc_far * gain, mask=inside)
        tl.store(lse + part, peak + tl.log2(safe), mask=head < HEADS)


@triton.jit(do_not_specialize=["splits"])
def mla_merge_kernel(
    out, parts, lse, kv_lens, splits,
    HEADS: tl.constexpr, LATENT: tl.constexpr, WIDTH: tl.constexpr, SPLIT: tl.constexpr,
    MOST: tl.constexpr,
):  # fmt: skip
    """A program: the splits of one head of one sequence, in order. A sequence of no keys has one,
    of zeros."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    length = tl.load(kv_lens + token)
    count = tl.maximum(tl.cdiv(length, mla_part(length, SPLIT, MOST)), 1)
    column = tl.arange(0, WIDTH)
    inside = column < LATENT
    part = (token * HEADS + head) * splits
    peak = tl.load(lse + part)
    acc = tl.load(parts + part * LATENT + column, mask=inside, other=0.0)
    total = 1.0
    for split in range(1, count):
        level = tl.load(lse + part + split)
        values = tl.load(parts + (part + split) * LATENT + column, mask=inside, other=0.0)
        top = tl.maximum(peak, level)
        shrink, weight = tl.exp2(peak - top), tl.exp2(level - top)
        acc = acc * shrink + values * weight
        total = total * shrink + weight
        peak = top
    to = out + (token * HEADS + head) * LATENT + column
    tl.store(to, (acc * (1.0 / total)).to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["table_stride", "first_head", "expanded_head_rows"])
def mla_expand_kernel(
    cache, w_uk, w_uv, k, v, kv_lens, starts, table,
    block_stride, token_stride, table_stride, first_head, expanded_head_rows, k_scale,
    LATENT: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr, KEY_WIDTH: tl.constexpr,
    VALUE_WIDTH: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr,
    DEPTH: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """A program: ROWS cached tokens of one sequence, expanded by one head's w_uk and w_uv into rows
    starts[sequence] + position of k [heads, rows, Dn] and v [heads, rows, Dv]."""
    lowest, sequence = tl.program_id(0) * ROWS, tl.program_id(2).to(tl.int64)
    length = tl.load(kv_lens + sequence)
    if lowest < length:
        position = lowest + tl.arange(0, ROWS)
        there = position < length
        entry = mla_places(
            table + sequence * table_stride, tl.minimum(position, length - 1), block_stride,
            token_stride, BLOCK_SIZE,
        )  # fmt: skip
        head = (first_head + tl.program_id(1)).to(tl.int64)
        key, value = tl.arange(0, KEY_WIDTH), tl.arange(0, VALUE_WIDTH)
        depth = tl.arange(0, DEPTH)
        to_key = w_uk + (head * KEY + key[None, :]) * LATENT + depth[:, None]
        to_value = w_uv + (head * VALUE + value[None, :]) * LATENT + depth[:, None]
        tokens = cache + entry[:, None] + depth[None, :]
        keys = tl.zeros((ROWS, KEY_WIDTH), dtype=tl.float32)
        values = tl.zeros((ROWS, VALUE_WIDTH), dtype=tl.float32)
        for start in range(0, LATENT, DEPTH):
            left = depth < LATENT - start
            latent = tl.load(tokens + start, mask=there[:, None] & left[None, :], other=0.0)
            latent = latent.to(DOT)
            mine = left[:, None] & (key < KEY)[None, :]
            a = tl.load(to_key + start, mask=mine, other=0.0).to(DOT)
            keys = tl.dot(latent, a, keys, input_precision="ieee")
            mine = left[:, None] & (value < VALUE)[None, :]
            b = tl.load(to_value + start, mask=mine, other=0.0).to(DOT)
            values = tl.dot(latent, b, values, input_precision="ieee")
        row = tl.program_id(1).to(tl.int64) * expanded_head_rows
        row += tl.load(starts + sequence) + position
        tl.store(
            k + row[:, None] * KEY + key[None, :], (keys * k_scale).to(k.dtype.element_ty),
            mask=there[:, None] & (key < KEY)[None, :],
        )  # fmt: skip
        tl.store(
            v + row[:, None] * VALUE + value[None, :], (values * k_scale).to(v.dtype.element_ty),
            mask=there[:, None] & (value < VALUE)[None, :],
        )  # fmt: skip


@triton.jit(do_not_specialize=["table_stride", "first_head", "expanded_head_rows"])
def mla_prefill_kernel(
    q, k, v, cache, out, cu_q, kv_lens, starts, table,
    q_token, q_head, out_token, out_head, block_stride, token_stride, table_stride,
    first_head, expanded_head_rows, scale, k_scale,
    LATENT: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr, ROTATED: tl.constexpr,
    KEY_WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr, ROTATED_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    """A program: ROWS queries of one head of one sequence, against what mla_expand_kernel wrote;
    the rotated keys come from the cache."""
    sequence = tl.program_id(2).to(tl.int64)
    begin, stop = tl.load(cu_q + sequence), tl.load(cu_q + sequence + 1)
    length = tl.load(kv_lens + sequence)
    lead = tl.program_id(0) * ROWS
    if lead < stop - begin:
        query = lead + tl.arange(0, ROWS)
        row_ok = query < stop - begin
        head = first_head + tl.program_id(1)
        column, turn = tl.arange(0, KEY_WIDTH), tl.arange(0, ROTATED_WIDTH)
        spread = tl.arange(0, VALUE_WIDTH)
        token = (begin + query).to(tl.int64)
        row = q + token[:, None] * q_token + head * q_head
        inside = row_ok[:, None] & (column < KEY)[None, :]
        tile = tl.load(row + column[None, :], mask=inside, other=0.0).to(DOT)
        turned = row_ok[:, None] & (turn < ROTATED)[None, :]
        rotated = tl.load(row + KEY + turn[None, :], mask=turned, other=0.0).to(tl.float32)
        # Why here: expanded keys are scaled already, the cache's are not.
        rotated = (rotated * k_scale).to(DOT)
        position = length - (stop - begin) + query
        end = tl.minimum(length, length - (stop - begin) + lead + ROWS)
        source = tl.program_id(1).to(tl.int64) * expanded_head_rows + tl.load(starts + sequence)
        acc = tl.zeros((ROWS, VALUE_WIDTH), dtype=tl.float32)
        peak = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((ROWS,), dtype=tl.float32)
        for lowest in range(0, end, KEYS):
            key = lowest + tl.arange(0, KEYS)
            there = key < end
            expanded = source + key
            known = there[:, None] & (column < KEY)[None, :]
            at = k + expanded[:, None] * KEY + column[None, :]
            keys = tl.load(at, mask=known, other=0.0).to(DOT)
            entry = mla_places(
                table + sequence * table_stride, tl.minimum(key, end - 1), block_stride,
                token_stride, BLOCK_SIZE,
            )  # fmt: skip
            shared = there[:, None] & (turn < ROTATED)[None, :]
            at = cache + entry[:, None] + LATENT + turn[None, :]
            place = tl.load(at, mask=shared, other=0.0).to(DOT)
            scores = tl.dot(tile, tl.trans(keys), input_precision="ieee")
            scores = tl.dot(rotated, tl.trans(place), scores, input_precision="ieee")
            seen = there[None, :] & (key[None, :] <= position[:, None]) & row_ok[:, None]
            scores = tl.where(seen, scores * scale, float("-inf"))
            weights, shrink, peak, total = mla_weights(scores, peak, total)
            known = there[:, None] & (spread < VALUE)[None, :]
            at = v + expanded[:, None] * VALUE + spread[None, :]
            values = tl.load(at, mask=known, other=0.0).to(DOT)
            acc = tl.dot(weights.to(DOT), values, acc * shrink[:, None], input_precision="ieee")
        result, _ = attention_finish(acc, peak, total, out, head, row_ok, 1.0, False)
        to = out + token[:, None] * out_token + head * out_head + spread[None, :]
        mask = row_ok[:, None] & (spread < VALUE)[None, :]
        tl.store(to, result.to(out.dtype.element_ty), mask=mask)
