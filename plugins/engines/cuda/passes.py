"""Forward passes on the device: from a step's arrays to hidden states. Knows no sequence, no draw.

What is here runs on every rank that shares a batch, whoever scheduled it: all that a pass needs is
in a `Pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch, KvCache
from tokenwire.plugins.engines.cuda.graphs import DecodeGraphs
from tokenwire.plugins.engines.cuda.inputs import Inputs, Pass, Tables

if TYPE_CHECKING:
    from tokenwire.plugins.engines.cuda.models.causal import CausalModel

__all__ = ("SLICE", "Between", "Passes")

SLICE = 64
"""Rows of prompt scores made at a time: a row is a whole vocabulary of floats."""

Between: TypeAlias = Callable[[], None]
"""What every rank of a group calls after each pass, before the next."""


@final
class Passes:
    def __init__(
        self,
        model: CausalModel,
        caches: Sequence[KvCache],
        *,
        rows: int,
        block_size: int,
        graphs: DecodeGraphs | None = None,
        between: Between | None = None,
    ) -> None:
        """`rows`: of the persistent batch."""
        self.model = model
        self.caches = tuple(caches)
        self.device = model.device
        self.is_cuda = model.device.type == "cuda"
        self.block_size = block_size
        self.graphs = graphs
        self._between = between
        self._groups = len(model.config.groups)
        self._pool = torch.zeros(rows, dtype=torch.int64, device=model.device)
        """The last id that each persistent row sampled: the next step's input, before the host
        knows it."""

    # --- in the thread that launches --------------------------------------------------------

    def move(self, array: NDArray[Any]) -> Tensor:
        """To the device, without a wait."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self.is_cuda:
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor

    def batch(self, found: Pass) -> Batch:
        move, inputs = self.move, found.inputs
        nd = inputs.decode_rows
        kv_lens, cu_q = inputs.kv_lens.astype(np.int32), inputs.cu_q.astype(np.int32)
        # Why the host's copies: lengths are needed as numbers too, and reading them back waits.
        decode = self._attention(found.decode, kv_lens[:nd], cu_q[: nd + 1])
        prefill = self._attention(found.prefill, kv_lens[nd:], cu_q[nd:])
        return Batch(
            ids=move(inputs.ids),
            positions=move(inputs.positions),
            slots=tuple(move(slots) for slots in inputs.slots),
            decode=decode,
            prefill=prefill,
            decode_tokens=nd,
            logit_rows=move(inputs.logit_tokens),
            span=found.span,
            adapters=None if found.adapters is None else move(found.adapters),
        )

    def _attention(
        self, tables: Tables, lens: NDArray[np.int32], bounds: NDArray[np.int32]
    ) -> tuple[AttentionBatch | None, ...]:
        """One a KV group, of a part of the sequences."""
        if not len(lens):
            return (None,) * self._groups
        max_kv, max_q = int(lens.max()), int(np.diff(bounds).max())
        moved_lens, moved_bounds = self.move(lens), self.move(bounds - bounds[0])
        return tuple(
            AttentionBatch(
                cu_q=moved_bounds,
                kv_lens=moved_lens,
                block_table=self.move(table),
                block_size=self.block_size,
                max_q=max_q,
                # Why 1: a blank token has no key, and a kernel wants room for one.
                max_kv=max(max_kv, 1),
                sum_kv=int(lens.sum()),
            )
            for table in tables
        )

    # --- in the device's stream, or the thread that stands for it ---------------------------

    def hidden(self, batch: Batch, inputs: Inputs) -> Tensor:
        """[T, H]: the pass itself. Ids that only the device knows are put in first."""
        if inputs.has_unknown:
            rows = self.move(inputs.token_rows)
            batch.ids.copy_(torch.where(batch.ids < 0, self._pool[rows], batch.ids))
        hidden = self._forward(batch)
        if self._between is not None:
            self._between()
        return hidden

    def _forward(self, batch: Batch) -> Tensor:
        if self.graphs is not None and self.graphs.fits(batch):
            return self.graphs.run(batch)
        return self.model.forward(batch, self.caches)

    def prompt_logits(
        self, hidden: Tensor, inputs: Inputs, row: int, count: int
    ) -> Iterator[tuple[int, Tensor]]:
        """Of a row's first `count` tokens, some at a time: (the first one's place, logits)."""
        start = int(inputs.cu_q[row])
        for at in range(0, count, SLICE):
            yield at, self.model.logits(hidden[start + at : start + min(at + SLICE, count)])

    def keep(self, inputs: Inputs, ids: Tensor) -> None:
        """What the pass's rows sampled [R], for the next."""
        self._pool[self.move(inputs.logit_rows)] = ids
