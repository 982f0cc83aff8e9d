"""Parameters and bytes that one GPU of a layout holds, and the KV that fits beside them. No time.

Norms, biases and the scales of fp8 blocks are left out: together under 0.1 %.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tokenwire.core.cost.kernels import kv_bytes
from tokenwire.core.cost.layout import ONE, Layout
from tokenwire.core.cost.shape import Gqa, KvDtype, ModelShape, Precision

__all__ = (
    "BYTES",
    "Bytes",
    "Parameters",
    "kv_room",
    "parameters",
    "sequence_bytes",
    "weight_bytes",
)


class Bytes(Struct, frozen=True):
    """Bytes of one weight, by what it belongs to, and of an activation that is multiplied."""

    linear: float
    expert: float
    activation: float
    head: float = 2


BYTES: Final[dict[Precision, Bytes]] = {
    "bf16": Bytes(2, 2, 2),
    "fp8": Bytes(1, 1, 1),
    # 4 bits, and one scale of 8 bits for 32 weights; multiplied in bf16.
    "mxfp4": Bytes(2, 4.25 / 8, 2),
}


class Parameters(Struct, frozen=True):
    """How many weights one GPU holds, over all layers."""

    attention: float
    dense: float
    shared: float
    experts: float
    router: float
    head: float
    embedding: float
    """0 where it is the head."""

    @property
    def total(self) -> float:
        linear = self.attention + self.dense + self.shared
        return linear + self.experts + self.router + self.head + self.embedding


def parameters(shape: ModelShape, layout: Layout = ONE) -> Parameters:
    """Those of one GPU; with `ONE`, the whole model's."""
    cut = layout.tensor
    head = shape.hidden * shape.vocabulary / cut
    moe, layers = shape.moe, shape.moe_layers
    matrices = 3 * shape.hidden / cut
    return Parameters(
        attention=shape.layers * _attention(shape, cut),
        dense=shape.dense_layers * matrices * shape.dense_width,
        shared=layers * matrices * moe.shared if moe else 0,
        experts=layers * matrices * moe.width * moe.experts / layout.data if moe else 0,
        router=layers * shape.hidden * moe.experts if moe else 0,
        head=head,
        embedding=0 if shape.tied else head,
    )


def _attention(shape: ModelShape, cut: int) -> float:
    """One layer. What does not belong to a head (MLA's way down) is whole on every GPU."""
    each, hidden = shape.attention, shape.hidden
    if isinstance(each, Gqa):
        # As many KV heads as the cache keeps: below one a GPU they are doubled.
        kept = max(1.0, each.kv_heads / cut)
        return hidden * each.dim * 2 * (each.heads / cut + kept)
    heads = each.heads / cut
    wide = heads * (each.nope + each.rope)
    query = (
        hidden * each.query_latent + each.query_latent * wide
        if each.query_latent
        else hidden * wide
    )
    down = hidden * (each.latent + each.rope)
    return (
        query + down + each.latent * heads * (each.nope + each.value) + heads * each.value * hidden
    )


def weight_bytes(shape: ModelShape, precision: Precision, layout: Layout = ONE) -> float:
    """Bytes of weights on one GPU. The router is kept in bf16."""
    held, size = parameters(shape, layout), BYTES[precision]
    linear = (held.attention + held.dense + held.shared) * size.linear
    return (
        linear
        + held.experts * size.expert
        + held.router * 2
        + (held.head + held.embedding) * size.head
    )


def sequence_bytes(shape: ModelShape, dtype: KvDtype, context: int, layout: Layout = ONE) -> float:
    """Bytes of one sequence's KV on one GPU: windowed layers keep what their window sees."""
    return kv_bytes(shape.attention, dtype, tensor=layout.tensor) * shape.seen(context)


def kv_room(memory: float, weights: float, sequence: float) -> int:
    """Sequences whose KV fits beside the weights; 0 where not even one does."""
    return max(0, int((memory - weights) // sequence))
