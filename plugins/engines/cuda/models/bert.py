"""The BERT encoder (arXiv:1810.04805): a token sees its whole text. Knows no file, no pooling."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from tokenwire.plugins.engines.cuda.layers.matmul import choose_product
from tokenwire.plugins.engines.cuda.layers.packed import EmbedBatch, attend_both_ways
from tokenwire.plugins.engines.cuda.models.bert_config import BertConfig

__all__ = ("BertModel",)

Weights = tuple[Tensor, Tensor]
"""A weight and its bias."""


@final
class BertModel:
    """Memory for the weights, not filled: the loader does that, by `places`."""

    def __init__(
        self,
        config: BertConfig,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.config = config
        self.device = torch.device(device)
        self.dtype = dtype
        self.product = choose_product(self.device, dtype)
        self.places: dict[str, Tensor] = {}
        """A checkpoint tensor's name -> where its values go."""
        hidden = config.hidden
        self.words = self._weight("embeddings.word_embeddings.weight", config.vocab_size, hidden)
        self.positions = self._weight(
            "embeddings.position_embeddings.weight", config.context_length, hidden
        )
        self.types = self._weight(
            "embeddings.token_type_embeddings.weight", config.token_types, hidden
        )
        self.norm = self.norm_weights("embeddings.LayerNorm")
        self.layers = tuple(
            _Layer(self, f"encoder.layer.{layer}") for layer in range(config.layers)
        )

    @property
    def weight_bytes(self) -> int:
        return sum(place.numel() * place.element_size() for place in self.places.values())

    def _weight(self, name: str, *shape: int) -> Tensor:
        place = torch.empty(shape, device=self.device, dtype=self.dtype)
        self.places[name] = place
        return place

    def norm_weights(self, name: str) -> Weights:
        size = self.config.hidden
        return self._weight(f"{name}.weight", size), self._weight(f"{name}.bias", size)

    def linear(self, names: tuple[str, ...], outputs: int, inputs: int) -> Weights:
        """One weight for several of the checkpoint's, each of `outputs` rows."""
        rows = outputs * len(names)
        weight = torch.empty((rows, inputs), device=self.device, dtype=self.dtype)
        bias = torch.empty(rows, device=self.device, dtype=self.dtype)
        for index, name in enumerate(names):
            part = slice(index * outputs, (index + 1) * outputs)
            self.places[f"{name}.weight"] = weight[part]
            self.places[f"{name}.bias"] = bias[part]
        return weight, bias

    def forward(self, batch: EmbedBatch) -> Tensor:
        """[T, H] of the last layer."""
        with torch.inference_mode():
            x = F.embedding(batch.ids, self.words)
            x += F.embedding(batch.positions, self.positions)
            x += self.types[0]
            x = self.normalise(x, self.norm)
            for layer in self.layers:
                x = layer(x, batch)
            return x

    def normalise(self, x: Tensor, weights: Weights) -> Tensor:
        """[T, H] -> [T, H], by (weight, bias)."""
        return F.layer_norm(x, (self.config.hidden,), *weights, eps=self.config.eps)


@final
class _Layer:
    def __init__(self, model: BertModel, name: str) -> None:
        self.model, self.config = model, model.config
        self.product = model.product
        hidden, inner = self.config.hidden, self.config.intermediate
        own = f"{name}.attention.self"
        self.qkv = model.linear((f"{own}.query", f"{own}.key", f"{own}.value"), hidden, hidden)
        self.output = model.linear((f"{name}.attention.output.dense",), hidden, hidden)
        self.attention_norm = model.norm_weights(f"{name}.attention.output.LayerNorm")
        self.up = model.linear((f"{name}.intermediate.dense",), inner, hidden)
        self.down = model.linear((f"{name}.output.dense",), hidden, inner)
        self.output_norm = model.norm_weights(f"{name}.output.LayerNorm")

    def __call__(self, x: Tensor, batch: EmbedBatch) -> Tensor:
        config, normalise = self.config, self.model.normalise
        qkv = self.product(x, *self.qkv).view(-1, 3, config.heads, config.head_dim)
        seen = attend_both_ways(qkv[:, 0], qkv[:, 1], qkv[:, 2], batch)
        x = normalise(self.product(seen.flatten(1), *self.output) + x, self.attention_norm)
        inner = F.gelu(
            self.product(x, *self.up), approximate="none" if config.gelu == "erf" else "tanh"
        )
        return normalise(self.product(inner, *self.down) + x, self.output_norm)
