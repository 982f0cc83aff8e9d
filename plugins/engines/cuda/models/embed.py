"""Texts to vectors: one vector for each text out of its tokens' hidden states."""

from __future__ import annotations

from typing import Protocol, final

import torch
from torch import Tensor
from torch.nn import functional as F

from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.packed import EmbedBatch
from tokenwire.plugins.engines.cuda.memory import layer_cache
from tokenwire.plugins.engines.cuda.models.causal import CausalModel
from tokenwire.plugins.engines.cuda.models.pooling import PoolingSpec

__all__ = ("CausalEmbedder", "Embedder", "Encoder", "EncoderEmbedder", "pool")

BLOCK = 16


class Embedder(Protocol):
    """What the worker calls. One batch is one pass; there is no cache between calls."""

    def embed(self, batch: EmbedBatch) -> Tensor:
        """[B, H] float32."""
        ...


class Encoder(Protocol):
    def forward(self, batch: EmbedBatch) -> Tensor:
        """[T, H]."""
        ...


def pool(hidden: Tensor, batch: EmbedBatch, spec: PoolingSpec) -> Tensor:
    """hidden [T, H] -> [B, H] float32."""
    starts = batch.starts
    match spec.kind:
        case "first":
            found = hidden[list(starts)].float()
        case "last":
            pairs = zip(starts, batch.lengths, strict=True)
            found = hidden[[start + length - 1 for start, length in pairs]].float()
        case "mean":
            found = hidden.new_zeros(len(batch.lengths), hidden.shape[1], dtype=torch.float32)
            found.index_add_(0, batch.rows, hidden.float())
            found /= torch.tensor(batch.lengths, device=hidden.device)[:, None]
    return F.normalize(found, dim=-1) if spec.normalise else found


@final
class EncoderEmbedder:
    def __init__(self, encoder: Encoder, spec: PoolingSpec) -> None:
        self.encoder = encoder
        self.spec = spec

    def embed(self, batch: EmbedBatch) -> Tensor:
        with torch.inference_mode():
            return pool(self.encoder.forward(batch), batch, self.spec)


@final
class CausalEmbedder:
    """A causal model, every text a prefill from nothing.

    Its KV goes to one cache that all layers share, since none reads what another has written.
    """

    def __init__(self, model: CausalModel, spec: PoolingSpec) -> None:
        self.model = model
        self.spec = spec

    def embed(self, batch: EmbedBatch) -> Tensor:
        with torch.inference_mode():
            step, blocks = self._step(batch)
            cache = layer_cache(self.model, blocks, BLOCK)
            caches = [cache] * self.model.config.layers
            return pool(self.model.forward(step, caches), batch, self.spec)

    def _step(self, batch: EmbedBatch) -> tuple[Batch, int]:
        """The batch as the network takes it, and how many blocks its cache has."""
        device, groups = self.model.device, len(self.model.config.groups)
        tables: list[list[int]] = []
        firsts, used = [], 1
        for length in batch.lengths:
            blocks = -(-length // BLOCK)
            tables.append(list(range(used, used + blocks)))
            firsts.append(used * BLOCK)
            used += blocks
        width = max(map(len, tables))
        slots = torch.tensor(firsts, device=device)[batch.rows] + batch.positions
        attention = AttentionBatch(
            cu_q=_ints([*batch.starts, sum(batch.lengths)], device),
            kv_lens=_ints(list(batch.lengths), device),
            block_table=_ints([each + [0] * (width - len(each)) for each in tables], device),
            block_size=BLOCK,
            max_q=max(batch.lengths),
            max_kv=max(batch.lengths),
        )
        step = Batch(
            ids=batch.ids,
            positions=batch.positions,
            slots=(slots,) * groups,
            decode=(None,) * groups,
            prefill=(attention,) * groups,
            decode_tokens=0,
            logit_rows=batch.ids[:0],
            adapters=batch.adapters,
        )
        return step, used


def _ints(values: object, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.int32).to(device)
