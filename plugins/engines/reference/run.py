"""One choice's decode loop: prefill, then one id a step. Knows its job; no other job, no clock."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any, final

import torch
from msgspec import Struct
from torch import Tensor

from tokenwire.core import seeds
from tokenwire.core.progress import Progress
from tokenwire.core.token_ids import TokenIds
from tokenwire.core.tokens import Finish, IdLogprobs, LogprobSettings, TokenJob
from tokenwire.plugins.engines.reference.model import Model
from tokenwire.plugins.engines.reference.sampling import (
    choose,
    filtered,
    penalised,
    permitted,
    scored,
)

__all__ = ("Brought", "Run")


class Brought(Struct, frozen=True):
    """What one step brought."""

    ids: TokenIds
    finish: Finish | None
    is_forced: bool
    logprobs: tuple[IdLogprobs, ...]


@final
class Run:
    def __init__(
        self, model: Model, job: TokenJob, index: int, progress: Progress, size: int
    ) -> None:
        """`size`: ids from it on are beyond the tokenizer, and do not exist."""
        self._model = model
        self._job = job
        self._progress = progress
        self._size = size
        self._seed = seeds.mix(job.sampling.seed, index)
        self._cache: Any = None
        self._output: array[int] = array("I", job.resume_ids)
        self._next = [*job.prompt, *job.resume_ids]
        """Ids that the model has not seen yet."""
        self._held: deque[IdLogprobs] = deque()
        """Of ids that were chosen and may not go yet."""
        self.prompt_logprobs: tuple[IdLogprobs | None, ...] | None = None
        """There after the first step, where asked for."""

    def step(self) -> Brought:
        """One forward pass and one id."""
        logits = self._forward()
        forced = self._progress.forced()
        allowed = permitted(logits, self._job.sampling, self._progress.masked())
        final_logits = penalised(
            allowed, self._job.sampling, prompt=self._job.prompt, output=self._output
        )
        position = len(self._output)
        id = forced
        if id is None:
            id = choose(final_logits, self._job.sampling, seed=self._seed, position=position)
        if self._job.logprobs is not None:
            self._held.append(self._score(logits, final_logits, id, self._job.logprobs))
        self._output.append(id)
        self._next = [id]
        sent = TokenIds(self._progress.push(id))
        logprobs = tuple(self._held.popleft() for _ in sent) if self._held else ()
        finish = self._progress.finish
        if finish is not None:
            self._cache = None
        return Brought(sent, finish, forced is not None, logprobs)

    def _forward(self) -> Tensor:
        """Logits [V] of the next id."""
        asked = self._job.logprobs
        of_all = self._cache is None and asked is not None and asked.prompt is not None
        rows, self._cache = self._model.logits(self._next, self._cache, of_all=of_all)
        rows = rows[:, : self._size]
        if of_all and asked is not None:
            self.prompt_logprobs = self._score_prompt(rows, asked)
        return rows[-1]

    def _score(
        self, logits: Tensor, final_logits: Tensor, id: int, asked: LogprobSettings
    ) -> IdLogprobs:
        """`raw`: of the model's own distribution; `sampled`: of the one that was drawn from."""
        if asked.mode == "raw":
            return _score_row(torch.log_softmax(logits, 0), id, asked.top, asked.ids)
        return _score_row(filtered(final_logits, self._job.sampling), id, asked.top, asked.ids)

    def _score_prompt(self, rows: Tensor, asked: LogprobSettings) -> tuple[IdLogprobs | None, ...]:
        """Row i foretells id i + 1; nothing foretells the first."""
        rest = zip(rows, self._job.prompt[1:], strict=False)
        top = asked.prompt or 0
        return (
            None,
            *(_score_row(torch.log_softmax(row, 0), id, top, asked.ids) for row, id in rest),
        )


def _score_row(logprobs: Tensor, id: int, top: int, ids: TokenIds) -> IdLogprobs:
    chosen, rank, likeliest = scored(logprobs, id, top)
    shown = {other for other, _ in likeliest}
    extra = [other for other in dict.fromkeys(ids) if other not in shown and other < len(logprobs)]
    return IdLogprobs(
        id, chosen, rank, (*likeliest, *((other, float(logprobs[other])) for other in extra))
    )
