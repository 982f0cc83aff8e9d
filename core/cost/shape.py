"""A model's sizes, as far as its cost depends on them: attention, dense and expert layers. No names
of checkpoints' keys, no weights."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ("Attention", "Gqa", "KvDtype", "Mla", "ModelShape", "Moe", "Precision")

KvDtype: TypeAlias = Literal["bf16", "fp8"]
Precision: TypeAlias = Literal["bf16", "fp8", "mxfp4"]
"""Of weights. fp8: all linear layers, the head in bf16. mxfp4: the experts, the rest in bf16."""


class Gqa(Struct, frozen=True, tag=True):
    """Grouped-query attention; multi-head where `kv_heads` is `heads`."""

    heads: int
    kv_heads: int
    dim: int
    """Of a head."""


class Mla(Struct, frozen=True, tag=True):
    """Multi-head latent attention: KV of all heads is one compressed vector and one rotated key."""

    heads: int
    latent: int
    """Width of the compressed KV (kv_lora_rank)."""
    rope: int
    """Rotated dimensions of q and k."""
    nope: int
    """The other dimensions of q and k, a head."""
    value: int
    """Dimensions of v, a head."""
    query_latent: int = 0
    """Width of the compressed query; 0: q is projected at once."""


Attention: TypeAlias = Gqa | Mla


class Moe(Struct, frozen=True):
    """A layer of experts, each of three matrices hidden x width."""

    experts: int
    top_k: int
    width: int
    shared: int = 0
    """Width of all shared experts together."""


class ModelShape(Struct, frozen=True):
    """A decoder. Layers that are not `dense_layers` are of experts."""

    name: str
    layers: int
    hidden: int
    vocabulary: int
    attention: Attention
    dense_layers: int
    dense_width: int
    moe: Moe | None = None
    window: int = 0
    """Tokens that windowed layers see."""
    window_layers: int = 0
    tied: bool = False
    """The head is the embedding."""
    precision: Precision = "bf16"
    """Of the weights as published."""
    max_context: int = 0
    """Tokens; 0: not known."""

    @property
    def moe_layers(self) -> int:
        return self.layers - self.dense_layers

    def seen(self, context: int) -> int:
        """Tokens that a query at the end of `context` looks at, over all layers."""
        windowed = self.window_layers * min(context, self.window)
        return (self.layers - self.window_layers) * context + windowed
