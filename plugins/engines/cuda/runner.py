"""Runs plans on the device: inputs up, network, draw, results down. Knows no job's life.

`launch` does not wait for the device; `Step.results` does, one step later where steps overlap. On
a CPU a thread of its own stands for the device's stream, where overlapping is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.alive import is_alive
from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.edits import collect
from tokenwire.plugins.engines.cuda.graphs import DecodeGraphs
from tokenwire.plugins.engines.cuda.inputs import Inputs, prepare
from tokenwire.plugins.engines.cuda.memory import device_memory
from tokenwire.plugins.engines.cuda.policy.plan import Row
from tokenwire.plugins.engines.cuda.results import (
    NAMES,
    NOTHING,
    Asked,
    Drew,
    PromptWish,
    Step,
)
from tokenwire.plugins.engines.cuda.rows import Rows
from tokenwire.plugins.engines.cuda.sampler import Drawn, Draws, Sampler, Scores

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = ("Runner",)

SLICE = 64
"""Rows of prompt scores made at a time: a row is a whole vocabulary of floats."""


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
        forbid_waits: bool = False,
    ) -> None:
        """`forbid_waits`: a launch that waits for a GPU raises RuntimeError: for tests."""
        self._forbid_waits = forbid_waits
        self._launched = 0
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
        self._launched += 1
        step, launch = Step(rows, self._launched), time.perf_counter_ns()
        with self._no_wait():
            inputs = prepare(rows, decode_rows, self.rows, self._block_size)
            batch = self._batch(inputs)
            draws = self._draws(inputs)
            prepared = time.perf_counter_ns()
            step.times = (launch, prepared, prepared, 0)
            if self._executor is not None:
                step.future = self._executor.submit(
                    self._in_stream, step, batch, inputs, draws, asked
                )
                return step
            found = self._compute(batch, inputs, draws, asked)
            if self._is_cuda:
                step.host = _to_host(found)
                step.event = torch.cuda.Event()
                step.event.record()
            else:
                step.host = found
                step.times = (launch, prepared, prepared, time.perf_counter_ns())
        return step

    def close(self) -> None:
        """No step will be launched again."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)

    def recover(self) -> None:
        """After a step that failed: give unused memory back, so that a smaller one may fit."""
        if self._is_cuda:
            torch.cuda.empty_cache()

    def is_alive(self) -> bool:
        """Whether the device still works at all."""
        return is_alive(self._device)

    def block_bytes(self) -> tuple[int, ...]:
        """Of one block of each KV group, in all its layers."""
        found = [0] * len(self.rows.tables)
        for cache, group in zip(self._caches, self._model.config.group_of_layer, strict=True):
            found[group] += cache.k[0].nbytes + cache.v[0].nbytes
        return tuple(found)

    def memory(self) -> tuple[int, int] | None:
        """Bytes that the device has, and those in use by whomever; None: nobody can say."""
        return device_memory(self._device)

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

    def _no_wait(self) -> AbstractContextManager[None]:
        return _guarded() if self._forbid_waits and self._is_cuda else nullcontext()

    # --- on the device ------------------------------------------------------------------------

    def _in_stream(
        self, step: Step, batch: Batch, inputs: Inputs, draws: Draws, asked: Asked
    ) -> Drew:
        """In the thread that stands for the device's stream."""
        began = time.perf_counter_ns()
        found = self._compute(batch, inputs, draws, asked)
        step.times = (*step.times[:2], began, time.perf_counter_ns())
        return found

    def _compute(self, batch: Batch, inputs: Inputs, draws: Draws, asked: Asked) -> Drew:
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


@contextmanager
def _guarded() -> Iterator[None]:
    """torch raises where it would wait for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _to_host(found: Drew) -> Drew:
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
