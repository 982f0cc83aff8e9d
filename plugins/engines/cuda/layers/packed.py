"""Texts of different lengths, end to end in one batch, and attention among each one's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ("EmbedBatch", "attend_both_ways", "pack")


@final
@dataclass(frozen=True, slots=True)
class EmbedBatch:
    """B texts of T tokens in all; no text is empty. Tensors are on the network's device."""

    ids: Tensor
    """[T] int64, the texts one after another."""
    positions: Tensor
    """[T] int64, each token's place in its text."""
    rows: Tensor
    """[T] int64, which text a token is of."""
    lengths: tuple[int, ...]
    """Of each text."""
    adapters: Tensor | None = None
    """[T] int32: each token's LoRA slot, 0 for none. None: no token has one."""

    @property
    def starts(self) -> tuple[int, ...]:
        found, start = [], 0
        for length in self.lengths:
            found.append(start)
            start += length
        return tuple(found)


def pack(
    texts: Sequence[Sequence[int]],
    device: torch.device | str,
    slots: Sequence[int] | None = None,
) -> EmbedBatch:
    """Texts of ids, one after another, on `device`. `slots`: each text's adapter.

    Raises ValueError for an empty text."""
    if not all(texts):
        raise ValueError("embed: wanted texts of at least one token, got an empty one")
    flat = [id for text in texts for id in text]
    places = [place for text in texts for place in range(len(text))]
    rows = [row for row, text in enumerate(texts) for _ in text]
    packed = torch.tensor([flat, places, rows], dtype=torch.int64).to(device)
    adapters = None
    if slots is not None:
        adapters = torch.tensor([slots[row] for row in rows], dtype=torch.int32).to(device)
    return EmbedBatch(packed[0], packed[1], packed[2], tuple(map(len, texts)), adapters)


def attend_both_ways(q: Tensor, k: Tensor, v: Tensor, batch: EmbedBatch) -> Tensor:
    """q, k, v [T, heads, D] -> [T, heads, D]; every token of a text sees all of it."""
    texts, longest = len(batch.lengths), max(batch.lengths)
    if min(batch.lengths) == longest:
        shape = (texts, longest, *q.shape[1:])
        q, k, v = (each.reshape(shape).transpose(1, 2) for each in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(0, 1)
    q, k, v = (_padded(each, batch, longest) for each in (q, k, v))
    there = torch.zeros(texts, longest, dtype=torch.bool, device=q.device)
    there[batch.rows, batch.positions] = True
    found = F.scaled_dot_product_attention(q, k, v, attn_mask=there[:, None, None, :])
    return found.transpose(1, 2)[batch.rows, batch.positions]


def _padded(each: Tensor, batch: EmbedBatch, longest: int) -> Tensor:
    """[T, heads, D] -> [B, heads, longest, D]."""
    room = each.new_zeros(len(batch.lengths), longest, *each.shape[1:])
    room[batch.rows, batch.positions] = each
    return room.transpose(1, 2)
