"""What a step changes in logits before ids are drawn: bias, masks, penalties, forced ids.

Host side: arrays over the rows that need anything, built from each choice's job and progress.
Most steps need nothing, and then nothing is built. numpy alone; knows no device.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from tokenwire.core.tokens import JobSampling

__all__ = ("MOST", "Bits", "Edits", "Penalties", "RowEdits", "allowed_bits", "collect")

Ints: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float32]
MOST = 1e25
"""What is added to a score, or what penalties raise it to, at most: so that it stays finite over
the coldest temperature, and some id can be drawn where all are biased away."""


@final
@dataclass(frozen=True, slots=True)
class RowEdits:
    """Of one row of logits."""

    bias: dict[int, float] = field(default_factory=dict)
    bits: Bits | None = None
    """[ceil(V / 32)]: ids that may be drawn. None: all."""
    penalised: tuple[JobSampling, Ints, Ints] | None = None
    """With the prompt's and the output's ids."""
    forced: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Penalties:
    """`rows` [P] of logits; ids [P, *] padded with the vocabulary's size; factors [P]."""

    rows: Ints
    prompt: Ints
    output: Ints
    repetition: Floats
    frequency: Floats
    presence: Floats


@final
@dataclass(frozen=True, slots=True)
class Edits:
    """Of R rows of logits, those that need anything."""

    bias: tuple[Ints, Ints, Floats] | None
    """Rows, ids, what is added."""
    bits: tuple[Ints, Bits] | None
    """Rows, and their masks."""
    penalties: Penalties | None
    forced: tuple[Ints, Ints] | None
    """Rows, ids."""


def collect(asked: list[tuple[int, RowEdits]], vocab_size: int) -> Edits | None:
    """`asked`: (row of the logits, what it needs). None: nothing is needed."""
    if not asked:
        return None
    return Edits(
        _bias(asked, vocab_size),
        _bits(asked),
        _penalties(asked, vocab_size),
        _forced(asked),
    )


def allowed_bits(
    vocab_size: int,
    *,
    allowed: Collection[int] = (),
    masked: Collection[int] = (),
    grammar: Bits | None = None,
) -> Bits | None:
    """The mask of a row: what the grammar and `allowed` (empty: all) take, less `masked`.

    Where nothing would be left `masked` gives way: an answer that ends early is nearer to what was
    asked than one that breaks its grammar. None: everything is allowed.
    """
    bits = grammar
    if allowed:
        bits = _of_ids(allowed, vocab_size) if bits is None else bits & _of_ids(allowed, vocab_size)
    hidden = [id for id in masked if id < vocab_size]
    if not hidden:
        return bits
    rest = _every(vocab_size) if bits is None else bits.copy()
    ids = np.array(hidden)
    words = rest.view(np.uint32)
    np.bitwise_and.at(words, ids // 32, ~(np.uint32(1) << (ids % 32).astype(np.uint32)))
    return rest if (rest & _every(vocab_size)).any() else bits


def _every(vocab_size: int) -> Bits:
    """Set for every id there is, and for none beyond."""
    bits = np.full(-(-vocab_size // 32), -1, np.int32)
    if vocab_size % 32:
        bits[-1] = (1 << (vocab_size % 32)) - 1
    return bits


def _of_ids(ids: Collection[int], vocab_size: int) -> Bits:
    bits = np.zeros(-(-vocab_size // 32), np.uint32)
    known = np.array([id for id in ids if id < vocab_size])
    np.bitwise_or.at(bits, known // 32, np.uint32(1) << (known % 32).astype(np.uint32))
    return bits.view(np.int32)


def _bias(asked: list[tuple[int, RowEdits]], vocab_size: int) -> tuple[Ints, Ints, Floats] | None:
    found = [
        (row, id, value)
        for row, edits in asked
        for id, value in edits.bias.items()
        if id < vocab_size
    ]
    if not found:
        return None
    rows, ids, values = zip(*found, strict=True)
    return np.array(rows), np.array(ids), np.clip(values, -MOST, MOST).astype(np.float32)


def _bits(asked: list[tuple[int, RowEdits]]) -> tuple[Ints, Bits] | None:
    found = [(row, edits.bits) for row, edits in asked if edits.bits is not None]
    if not found:
        return None
    return np.array([row for row, _ in found]), np.stack([bits for _, bits in found])


def _penalties(asked: list[tuple[int, RowEdits]], vocab_size: int) -> Penalties | None:
    found = [(row, edits.penalised) for row, edits in asked if edits.penalised is not None]
    if not found:
        return None
    sampling = [each[0] for _, each in found]
    return Penalties(
        np.array([row for row, _ in found]),
        _padded([prompt for _, (_, prompt, _) in found], vocab_size),
        _padded([output for _, (_, _, output) in found], vocab_size),
        np.array([one.repetition_penalty for one in sampling], np.float32),
        np.array([one.frequency_penalty for one in sampling], np.float32),
        np.array([one.presence_penalty for one in sampling], np.float32),
    )


def _padded(rows: list[Ints], vocab_size: int) -> Ints:
    """Ids beyond the vocabulary count as padding."""
    result = np.full((len(rows), max(len(row) for row in rows)), vocab_size, np.int64)
    for index, row in enumerate(rows):
        result[index, : len(row)] = np.minimum(row, vocab_size)
    return result


def _forced(asked: list[tuple[int, RowEdits]]) -> tuple[Ints, Ints] | None:
    found = [(row, edits.forced) for row, edits in asked if edits.forced is not None]
    if not found:
        return None
    rows, ids = zip(*found, strict=True)
    return np.array(rows), np.array(ids)
