"""One step's rows as arrays: ids, positions, slots, lengths. numpy alone; knows no device.

The decode rows of 256 sequences cost one short loop over Python objects; the rest is numpy.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.rows import Rows

__all__ = ("Inputs", "Pass", "Tables", "blank", "pass_of", "prepare")

Ints: TypeAlias = NDArray[np.int64]
Tables: TypeAlias = tuple[NDArray[np.int32], ...]
"""[B, W] block ids a KV group."""
UNKNOWN = -1


@final
@dataclass(frozen=True, slots=True)
class Inputs:
    """Of T tokens in B rows, the rows of one token first."""

    ids: Ints
    """[T]; -1: what the row before sampled, which only the device knows."""
    positions: Ints
    slots: tuple[Ints, ...]
    """[T] a KV group: block * block_size + offset."""
    token_rows: Ints
    """[T]: the persistent row of each token."""
    rows: Ints
    """[B]: the persistent row of each sequence."""
    kv_lens: Ints
    cu_q: Ints
    """[B + 1]."""
    decode_rows: int
    logit_tokens: Ints
    """[R]: the tokens after which an id is drawn."""
    logit_rows: Ints
    """[R]: the persistent row of each."""
    logit_positions: Ints
    """[R]: how many output ids come before the one that is drawn."""
    has_unknown: bool


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """All that a forward pass needs, wherever it is made."""

    inputs: Inputs
    decode: Tables
    """Of the rows of one token."""
    prefill: Tables
    """Of the others."""
    adapters: NDArray[np.int32] | None = None
    """[T]: each token's LoRA slot. None: no token has one."""
    span: int = 0
    """As Batch's."""


def pass_of(inputs: Inputs, batch: Rows, block_size: int, span: int = 0) -> Pass:
    """With what the inputs' rows have in the persistent batch."""
    nd = inputs.decode_rows
    has_adapters = bool(batch.adapter[inputs.rows].any())
    return Pass(
        inputs,
        _tables(batch, inputs.rows[:nd], inputs.kv_lens[:nd], block_size),
        _tables(batch, inputs.rows[nd:], inputs.kv_lens[nd:], block_size),
        batch.adapter[inputs.token_rows] if has_adapters else None,
        span,
    )


def blank(groups: int, span: int) -> Pass:
    """One token without a sequence: it has no key, and its KV goes nowhere."""
    zero, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    inputs = Inputs(
        ids=zero,
        positions=zero,
        slots=(zero - 1,) * groups,
        token_rows=zero,
        rows=zero,
        kv_lens=zero,
        cu_q=np.arange(2),
        decode_rows=1,
        logit_tokens=none,
        logit_rows=none,
        logit_positions=none,
        has_unknown=False,
    )
    return Pass(inputs, (np.zeros((1, 1), np.int32),) * groups, (), None, span)


def _tables(batch: Rows, rows: Ints, kv_lens: Ints, block_size: int) -> Tables:
    if not len(rows):
        return ()
    width = -(-int(kv_lens.max()) // block_size)
    return tuple(table[rows, :width] for table in batch.tables)


def prepare(rows: Many[Row], decode_rows: int, batch: Rows, block_size: int) -> Inputs:
    """Raises KeyError for a sequence without a persistent row."""
    places, starts, counts, prompts = _numbers(rows, batch)
    ids = _ids(rows, int(counts.sum()))
    token_rows, positions = places, starts
    cu_q = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=cu_q[1:])
    if len(ids) != len(rows):
        token_rows = np.repeat(places, counts)
        positions = np.arange(len(ids)) + np.repeat(starts - cu_q[:-1], counts)
    blocks, offsets = positions // block_size, positions % block_size
    slots = tuple(
        table[token_rows, blocks].astype(np.int64) * block_size + offsets for table in batch.tables
    )
    tokens = _logit_tokens(rows, cu_q)
    return Inputs(
        ids=ids,
        positions=positions,
        slots=slots,
        token_rows=token_rows,
        rows=places,
        kv_lens=starts + counts,
        cu_q=cu_q,
        decode_rows=decode_rows,
        logit_tokens=tokens,
        logit_rows=token_rows[tokens],
        logit_positions=positions[tokens] + 1 - _of_tokens(prompts, counts)[tokens],
        has_unknown=bool((ids == UNKNOWN).any()),
    )


def _numbers(rows: Many[Row], batch: Rows) -> tuple[Ints, Ints, Ints, Ints]:
    found = [
        (batch.row(row.seq, row.start), row.start, row.count, row.seq.prompt_tokens) for row in rows
    ]
    numbers = np.array(found, np.int64).reshape(len(rows), 4)
    places, starts, counts, prompts = np.ascontiguousarray(numbers.T)
    return places, starts, counts, prompts


def _of_tokens(values: Ints, counts: Ints) -> Ints:
    return values if counts.sum() == len(values) else np.repeat(values, counts)


def _ids(rows: Many[Row], total: int) -> Ints:
    ids = np.empty(total, np.int64)
    at = 0
    for row in rows:
        tokens, start, count = row.seq.tokens, row.start, row.count
        if count == 1:
            ids[at] = tokens[start] if start < len(tokens) else UNKNOWN
            at += 1
            continue
        known = tokens[start : start + count - len(row.drafts)]
        end = at + len(known)
        ids[at:end] = known
        ids[end : end + len(row.drafts)] = row.drafts
        at += count
    return ids


def _logit_tokens(rows: Many[Row], cu_q: Ints) -> Ints:
    """The last token of each row that samples, with those of its drafts."""
    if all(row.samples and not row.drafts for row in rows):
        return cu_q[1:] - 1
    ends = cu_q[1:].tolist()
    found = [
        range(end - 1 - len(row.drafts), end)
        for row, end in zip(rows, ends, strict=True)
        if row.samples
    ]
    return np.array([token for tokens in found for token in tokens], np.int64)
