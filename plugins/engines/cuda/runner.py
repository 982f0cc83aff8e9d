"""Runs plans on the device: inputs up, network, draw, results down. Knows no job's life.

`launch` does not wait for the device; `Step.results` does, one step later where steps overlap. On
a CPU a thread of its own stands for the device's stream, where overlapping is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.edits import RowEdits, collect
from tokenwire.plugins.engines.cuda.graphs import DecodeGraphs
from tokenwire.plugins.engines.cuda.inputs import Inputs, prepare
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.rows import Rows
from tokenwire.plugins.engines.cuda.sampler import Drawn, Draws, Sampler, Scores, Wish

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = ("Asked", "PromptWish", "Results", "Runner", "Step")

SLICE = 64
"""Rows of prompt scores made at a time: a row is a whole vocabulary of floats."""


@final
@dataclass(frozen=True, slots=True)
class PromptWish:
    """Log probabilities of a prompt's ids: of those that follow the row's tokens."""

    row: int
    """Of the plan."""
    targets: tuple[int, ...]
    """The ids that follow the row's first tokens, one each."""
    top: int
    extra: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What a step's rows want beyond their ids."""

    edits: tuple[tuple[int, RowEdits], ...] = ()
    """(row of the logits, what it needs)."""
    wishes: tuple[Wish, ...] = ()
    prompts: tuple[PromptWish, ...] = ()


NOTHING = Asked()


@final
@dataclass(frozen=True, slots=True)
class Results:
    """On the host. Of R rows of logits, and of every wish."""

    ids: list[int]
    is_sound: list[bool]
    scores: tuple[Mapping[str, list[Any]], ...] = ()
    """One a wish: chosen, rank, top_values, top_ids, extra, each with a row an entry."""
    prompts: tuple[Mapping[str, list[Any]], ...] = ()


@final
class Step:
    """A launched step."""

    __slots__ = ("_event", "_future", "_host", "rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self._future: Future[Any] | None = None
        self._host: tuple[Drawn, tuple[Scores, ...]] | None = None
        self._event: Any = None

    @staticmethod
    def failed(rows: Sequence[Row], error: Exception) -> Step:
        """One that could not be launched: `results` raises what happened."""
        step = Step(rows)
        step._future = Future()
        step._future.set_exception(error)
        return step

    def results(self) -> Results:
        """Waits for the device. Raises what the step raised."""
        if self._future is not None:
            self._host = self._future.result()
        if self._event is not None:
            self._event.synchronize()
        assert self._host is not None
        drawn, prompts = self._host
        return Results(
            ids=drawn.ids.tolist(),
            is_sound=drawn.is_sound.tolist(),
            scores=tuple(_lists(each) for each in drawn.scores),
            prompts=tuple(_lists(each) for each in prompts),
        )


@final
class Runner:
    def __init__(
        self,
        model: CausalModel,
        caches: Sequence[KvCache],
        rows: Rows,
        *,
        vocab_size: int,
        block_size: int,
        graphs: DecodeGraphs | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._model = model
        self._caches = tuple(caches)
        self.rows = rows
        self._block_size = block_size
        self._graphs = graphs
        self._executor = executor
        self._device = model.device
        self._is_cuda = model.device.type == "cuda"
        self._sampler = Sampler(model.ops, vocab_size, self._move)
        self._vocab_size = vocab_size
        self._pool = torch.zeros(len(rows.seed), dtype=torch.int64, device=model.device)
        """The last id that each persistent row sampled: the next step's input, before the host
        knows it."""

    def launch(self, rows: Sequence[Row], decode_rows: int, asked: Asked = NOTHING) -> Step:
        """Everything that the host must prepare, then the device's work. Does not wait for it."""
        inputs = prepare(rows, decode_rows, self.rows, self._block_size)
        batch = self._batch(inputs)
        draws = self._draws(inputs)
        step = Step(rows)
        if self._executor is not None:
            step._future = self._executor.submit(self._compute, batch, inputs, draws, asked)
            return step
        found = self._compute(batch, inputs, draws, asked)
        step._host = found
        if self._is_cuda:
            step._host = _to_host(found)
            step._event = torch.cuda.Event()
            step._event.record()
        return step

    def recover(self) -> None:
        """After a step that failed: give unused memory back, so that a smaller one may fit."""
        if self._is_cuda:
            torch.cuda.empty_cache()

    def is_alive(self) -> bool:
        """Whether the device still works at all."""
        try:
            return int(torch.ones(1, device=self._device).add_(1)) == 2
        except RuntimeError:
            return False

    # --- host to device ---------------------------------------------------------------------

    def _move(self, array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self._is_cuda:
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor

    def _batch(self, inputs: Inputs) -> Batch:
        move, nd = self._move, inputs.decode_rows
        nt = len(inputs.rows) - nd
        kv_lens, cu_q = inputs.kv_lens.astype(np.int32), inputs.cu_q.astype(np.int32)
        # Why the host's copies: lengths are needed as numbers too, and reading them back waits.
        decode = self._attention(inputs, slice(0, nd), kv_lens, cu_q) if nd else None
        prefill = self._attention(inputs, slice(nd, None), kv_lens, cu_q) if nt else None
        groups = len(self.rows.tables)
        adapters = None
        if self._model.adapter_slots and self.rows.adapter[inputs.rows].any():
            adapters = move(self.rows.adapter[inputs.token_rows])
        return Batch(
            ids=move(inputs.ids),
            positions=move(inputs.positions),
            slots=tuple(move(slots) for slots in inputs.slots),
            decode=(None,) * groups if decode is None else decode,
            prefill=(None,) * groups if prefill is None else prefill,
            decode_tokens=nd,
            logit_rows=move(inputs.logit_tokens),
            adapters=adapters,
        )

    def _attention(
        self, inputs: Inputs, part: slice, kv_lens: NDArray[np.int32], cu_q: NDArray[np.int32]
    ) -> tuple[AttentionBatch, ...]:
        """One a KV group, of a part of the sequences."""
        lens = kv_lens[part]
        bounds = cu_q[part.start : (part.stop or len(kv_lens)) + 1]
        bounds = bounds - bounds[0]
        max_kv, max_q = int(lens.max()), int(np.diff(bounds).max())
        width = -(-max_kv // self._block_size)
        moved_lens, moved_bounds = self._move(lens), self._move(bounds)
        return tuple(
            AttentionBatch(
                cu_q=moved_bounds,
                kv_lens=moved_lens,
                block_table=self._move(table[inputs.rows[part], :width]),
                block_size=self._block_size,
                max_q=max_q,
                max_kv=max_kv,
            )
            for table in self.rows.tables
        )

    def _draws(self, inputs: Inputs) -> Draws:
        rows, held = inputs.logit_rows, self.rows
        return Draws(
            temperature=held.temperature[rows],
            top_k=held.top_k[rows],
            top_p=held.top_p[rows],
            min_p=held.min_p[rows],
            seeds=held.seed[rows],
            positions=inputs.logit_positions,
        )

    # --- on the device ------------------------------------------------------------------------

    def _compute(
        self, batch: Batch, inputs: Inputs, draws: Draws, asked: Asked
    ) -> tuple[Drawn, tuple[Scores, ...]]:
        with torch.inference_mode():
            if inputs.has_unknown:
                rows = self._move(inputs.token_rows)
                batch.ids.copy_(torch.where(batch.ids < 0, self._pool[rows], batch.ids))
            hidden = self._forward(batch)
            wanted = hidden[batch.logit_rows]
            edits = collect(list(asked.edits), self._vocab_size)
            drawn = self._sampler.draw(
                wanted, self._model.logits(wanted), draws, edits, asked.wishes
            )
            self._pool[self._move(inputs.logit_rows)] = drawn.ids
            prompts = tuple(self._score(hidden, inputs, wish) for wish in asked.prompts)
            return drawn, prompts

    def _forward(self, batch: Batch) -> Tensor:
        if self._graphs is not None and self._graphs.fits(batch):
            return self._graphs.run(batch)
        return self._model.forward(batch, self._caches)

    def _score(self, hidden: Tensor, inputs: Inputs, wish: PromptWish) -> Scores:
        start, count = int(inputs.cu_q[wish.row]), len(wish.targets)
        targets = self._move(np.array(wish.targets, np.int64))
        extra = self._move(np.tile(np.array(wish.extra, np.int64), (count, 1)))
        parts = [
            self._sampler.score(
                self._model.logits(hidden[start + at : start + min(at + SLICE, count)]),
                targets[at : at + SLICE],
                wish.top,
                extra[at : at + SLICE],
            )
            for at in range(0, count, SLICE)
        ]
        return Scores(*(torch.cat([getattr(part, name) for part in parts]) for name in NAMES))


NAMES = ("chosen", "rank", "top_values", "top_ids", "extra")


def _lists(scores: Scores) -> Mapping[str, list[Any]]:
    return {name: getattr(scores, name).tolist() for name in NAMES}


def _to_host(found: tuple[Drawn, tuple[Scores, ...]]) -> tuple[Drawn, tuple[Scores, ...]]:
    drawn, prompts = found

    def down(tensor: Tensor) -> Tensor:
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)

    def whole(scores: Scores) -> Scores:
        return Scores(*(down(getattr(scores, name)) for name in NAMES))

    moved = Drawn(
        down(drawn.ids), down(drawn.is_sound), tuple(whole(each) for each in drawn.scores)
    )
    return moved, tuple(whole(each) for each in prompts)
