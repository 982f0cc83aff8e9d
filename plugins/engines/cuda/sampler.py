"""From hidden states to ids and their log probabilities, on the device. Knows no job, no schedule.

The order is fixed: raw scores, bias, masks, penalties, then the draw (temperature, top_k, top_p,
min_p, noise). Nothing is read back: `Drawn` is on the device, and the runner brings it in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokenwire.kernels.sample.reference import filtered
from tokenwire.plugins.engines.cuda.edits import MOST, Edits

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("Drawn", "Draws", "Move", "Sampler", "Scores", "Wish")

Ints: TypeAlias = NDArray[np.int64]
Move: TypeAlias = Callable[[NDArray[np.generic]], Tensor]
"""Host array -> tensor on the device, without waiting."""


@final
@dataclass(frozen=True, slots=True)
class Draws:
    """Of R rows of logits, in the order in which they are drawn."""

    temperature: NDArray[np.float32]
    top_k: NDArray[np.int32]
    top_p: NDArray[np.float32]
    min_p: NDArray[np.float32]
    seeds: Ints
    positions: Ints


@final
@dataclass(frozen=True, slots=True)
class Wish:
    """Log probabilities of some of the rows."""

    rows: Ints
    top: int
    extra: Ints
    """[len(rows), E]: further ids of each; padded with 0."""
    is_sampled: bool
    """Of the distribution that is drawn from; else of the model's own."""


@final
@dataclass(frozen=True, slots=True)
class Scores:
    """[S] rows: the chosen id's log probability and rank, the likeliest ids, the extra ones."""

    chosen: Tensor
    rank: Tensor
    top_values: Tensor
    top_ids: Tensor
    extra: Tensor


@final
@dataclass(frozen=True, slots=True)
class Drawn:
    ids: Tensor
    """[R] int64."""
    is_sound: Tensor
    """[R] bool: false where the network gave NaN or infinity."""
    scores: tuple[Scores, ...]
    """One a wish."""


@final
class Sampler:
    def __init__(self, ops: Ops, vocab_size: int, move: Move) -> None:
        """`vocab_size`: ids from it on are beyond the tokenizer, and do not exist."""
        self._ops = ops
        self._size = vocab_size
        self._move = move

    def draw(
        self,
        hidden: Tensor,
        logits: Tensor,
        draws: Draws,
        edits: Edits | None,
        wishes: tuple[Wish, ...],
    ) -> Drawn:
        """`hidden` [R, H] and the `logits` [R, V'] fp32 that follow from it."""
        is_sound = torch.isfinite(hidden).all(-1)
        logits = logits[:, : self._size]
        raw = logits
        if edits is not None:
            if wishes and not all(wish.is_sampled for wish in wishes):
                raw = logits.clone()
            self._edit(logits, edits)
        ids = self._choose(logits, draws)
        if edits is not None and edits.forced is not None:
            rows, forced = edits.forced
            ids[self._move(rows)] = self._move(forced)
        scores = tuple(self._score(raw, logits, ids, draws, wish) for wish in wishes)
        return Drawn(ids, is_sound, scores)

    def score(self, logits: Tensor, ids: Tensor, top: int, extra: Tensor) -> Scores:
        """The model's own log probabilities of ids [S], with extra ids [S, E]."""
        logits = logits[:, : self._size]
        chosen, rank, values, best = self._ops.logprobs(logits, ids, top)
        others = logits.gather(1, extra)
        if others.shape[1]:
            others = others - torch.logsumexp(logits, -1, keepdim=True)
        return Scores(chosen, rank, values, best, others)

    def _choose(self, logits: Tensor, draws: Draws) -> Tensor:
        if not draws.temperature.any():
            return torch.argmax(logits, -1)
        move = self._move
        return self._ops.sample(
            logits,
            move(draws.temperature),
            move(draws.top_k),
            move(draws.top_p),
            move(draws.min_p),
            move(draws.seeds),
            move(draws.positions),
        )

    def _edit(self, logits: Tensor, edits: Edits) -> None:
        move = self._move
        if edits.bias is not None:
            rows, ids, values = edits.bias
            logits.index_put_((move(rows), move(ids)), move(values), accumulate=True)
        if edits.bits is not None:
            rows, bits = edits.bits
            index = move(rows)
            part = logits[index]
            self._ops.token_mask(part, move(bits))
            logits[index] = part
        found = edits.penalties
        if found is not None:
            index = move(found.rows)
            part = logits[index]
            self._ops.penalties(
                part,
                move(found.prompt),
                move(found.output),
                move(found.repetition),
                move(found.frequency),
                move(found.presence),
            )
            logits[index] = part.clamp_(max=MOST)

    def _score(self, raw: Tensor, logits: Tensor, ids: Tensor, draws: Draws, wish: Wish) -> Scores:
        rows = self._move(wish.rows)
        source = logits if wish.is_sampled else raw
        part = source[rows]
        if wish.is_sampled:
            part = self._filtered(part, draws, wish.rows)
        return self.score(part, ids[rows], wish.top, self._move(wish.extra))

    def _filtered(self, part: Tensor, draws: Draws, rows: Ints) -> Tensor:
        """Log probabilities [S, V] of the draw. Greedy rows: at temperature 1."""
        return torch.stack(
            [
                filtered(
                    part[at],
                    float(draws.temperature[row]) or 1.0,
                    int(draws.top_k[row]),
                    float(draws.top_p[row]),
                    float(draws.min_p[row]),
                )
                for at, row in enumerate(rows.tolist())
            ]
        )
