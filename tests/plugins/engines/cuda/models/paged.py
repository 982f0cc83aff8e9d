"""Drives a network over paged caches as a runner would: blocks in no order, chunks, windows.

Keys of blocks that a window has passed are lost on purpose: the null block is full of NaN.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.kernels.op import REFERENCE, Signature
from tokenwire.kernels.ops import Ops, all_ops
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.memory import layer_cache

__all__ = ("Paged", "reference_ops")

BLOCK = 4


def reference_ops() -> Ops:
    """Every op's readable reference; and one thread, since tiny products only wait for others."""
    torch.set_num_threads(1)
    return Ops.choose(Signature(), {op.name: REFERENCE for op in all_ops()}, environ={})


class Paged:
    """Sequences of ids, each computed up to a point; `step` computes more of some of them. Parts
    that share experts are all driven alike."""

    def __init__(self, model, sequences: Sequence[Sequence[int]], *, blocks: int = 256) -> None:
        config = model.config
        self.model = model
        self.sequences = [list(each) for each in sequences]
        self.computed = [0] * len(sequences)
        self.groups = config.groups
        self.caches = [layer_cache(model, blocks, BLOCK) for _ in range(config.layers)]
        for cache in self.caches:
            cache.k.fill_(torch.nan)
            cache.v.fill_(torch.nan)
        order = random.Random(0)
        self.free = [order.sample(range(1, blocks), blocks - 1) for _ in self.groups]
        self.tables = [[[] for _ in self.groups] for _ in sequences]

    def step(self, counts: dict[int, int], adapters: dict[int, int] | None = None):
        """{sequence: how many of its next ids} -> {sequence: logits [count, V]}."""
        decoding = [each for each, count in counts.items() if count == 1]
        filling = [each for each, count in counts.items() if count > 1]
        rows = [(each, self.computed[each], counts[each]) for each in decoding + filling]
        ids = [id for each, start, count in rows for id in self.sequences[each][start:][:count]]
        slots, decode, prefill = [], [], []
        for group in range(len(self.groups)):
            slots.append(self._slots(rows, group))
            decode.append(self._attention(rows[: len(decoding)], group))
            prefill.append(self._attention(rows[len(decoding) :], group))
        batch = Batch(
            ids=torch.tensor(ids),
            positions=torch.tensor([p for _, start, n in rows for p in range(start, start + n)]),
            slots=tuple(slots),
            decode=tuple(decode),
            prefill=tuple(prefill),
            decode_tokens=len(decoding),
            logit_rows=torch.arange(len(ids)),
            span=len(ids) if self.model.site.mesh.data.size > 1 else 0,
            adapters=None
            if adapters is None
            else torch.tensor(
                [adapters.get(each, 0) for each, _, n in rows for _ in range(n)], dtype=torch.int32
            ),
        )
        hidden = self.model.forward(batch, self.caches)
        logits = self.model.logits(hidden[batch.logit_rows])
        found, at = {}, 0
        for each, _, count in rows:
            found[each] = logits[at : at + count]
            self.computed[each] += count
            at += count
        return found

    def _slots(self, rows, group: int) -> torch.Tensor:
        found = []
        for each, start, count in rows:
            table = self.tables[each][group]
            while len(table) * BLOCK < start + count:
                table.append(self.free[group].pop())
            found += [table[p // BLOCK] * BLOCK + p % BLOCK for p in range(start, start + count)]
        return torch.tensor(found)

    def _attention(self, rows, group: int) -> AttentionBatch | None:
        if not rows:
            return None
        window = self.groups[group].window
        tables = []
        for each, start, count in rows:
            table = self.tables[each][group][: -(-(start + count) // BLOCK)]
            first = max(0, start - window + 1) // BLOCK if window else 0
            tables.append([0] * first + table[first:])
        width = max(map(len, tables)) + 1
        cu_q = [0]
        for _, _, count in rows:
            cu_q.append(cu_q[-1] + count)
        return AttentionBatch(
            cu_q=torch.tensor(cu_q, dtype=torch.int32),
            kv_lens=torch.tensor([start + count for _, start, count in rows], dtype=torch.int32),
            block_table=torch.tensor(
                [table + [0] * (width - len(table)) for table in tables], dtype=torch.int32
            ),
            block_size=BLOCK,
            max_q=max(count for _, _, count in rows),
            max_kv=max(start + count for _, start, count in rows),
        )
