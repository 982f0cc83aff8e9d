"""What crosses links in a step: experts' rows between parts, sums between cut matrices, KV between
pools. Bytes that leave one GPU, and the time they take. No kernels.

Rows travel to the experts in fp8 with scales (H*(1+4/128) bytes; 2H where weights are not fp8) and
back in bf16 (2H). All bytes are counted on the slowest link that the group needs; what stays in a
domain is not taken off, so that a group just above one domain is judged too strictly, not too well.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tokenwire.core.cost.gpus import Cluster
from tokenwire.core.cost.kernels import SCALE
from tokenwire.core.cost.layout import Layout
from tokenwire.core.cost.shape import ModelShape

__all__ = (
    "Dispatch",
    "all_reduce_bytes",
    "all_reduce_seconds",
    "copies_sent",
    "exchange_bytes",
    "exchange_seconds",
    "kv_transfer_seconds",
    "places_touched",
    "row_bytes",
)

Dispatch: TypeAlias = Literal["pair", "rank", "node"]
"""What a row is sent once to: each of its experts, each GPU with one of them, or each domain."""


def row_bytes(hidden: float, *, fp8: bool) -> tuple[float, float]:
    """One token's row -> bytes there, bytes back."""
    return hidden * (1 + SCALE) if fp8 else hidden * 2, hidden * 2


def places_touched(places: float, top_k: int) -> float:
    """Of so many places that hold equal shares of the experts, those with one of a token's `top_k`,
    expected: R*(1-(1-1/R)^k). Choices count as independent."""
    return places * (1 - (1 - 1 / places) ** top_k)


def copies_sent(places: int, top_k: int, dispatch: Dispatch) -> float:
    """How often a row is sent: `top_k` times point to point, or once to each of the R-1 others by
    all-gather and reduce-scatter where those are fewer; without doubles, as places are touched."""
    if dispatch == "pair":
        return min(top_k, places - 1)
    return places_touched(places, top_k)


def all_reduce_bytes(ranks: int, tokens: float, hidden: float) -> float:
    """A ring's all-reduce of bf16 rows: each GPU sends 2*(n-1)/n of them."""
    return 2 * (ranks - 1) / ranks * tokens * hidden * 2


def all_reduce_seconds(shape: ModelShape, cluster: Cluster, layout: Layout, tokens: float) -> float:
    """A step's all-reduces, all layers: after attention and after each layer that is cut. Where
    experts are divided too, their sum is part of the exchange, but shared ones' is not."""
    if layout.tensor == 1:
        return 0.0
    has_none = layout.data > 1 and shape.moe is not None and not shape.moe.shared
    count = 2 * shape.layers - (shape.moe_layers if has_none else 0)
    moved = all_reduce_bytes(layout.tensor, tokens, shape.hidden)
    return count * moved / cluster.summing(layout.tensor)


def exchange_bytes(
    shape: ModelShape,
    layout: Layout,
    tokens: float,
    *,
    fp8: bool,
    domain: int,
    dispatch: Dispatch = "pair",
) -> tuple[float, float]:
    """What one GPU sends for one layer, there and back, of `tokens` of one part: over the slowest
    link of the group, and within a domain beside that. (0, 0) where there is one part alone.

    In `TP_n x DEP_m` every GPU of a part holds a slice of the same experts: each sends 1/n of a
    part's rows, and rows are gathered over NVLink, those of the part itself too, summed on their
    way back, and gathered at home.
    """
    moe = shape.moe
    if moe is None or layout.data == 1:
        return 0.0, 0.0
    there, back = row_bytes(shape.hidden, fp8=fp8)
    once = tokens * (there + back)
    copies = copies_sent(layout.data, moe.top_k, dispatch)
    outside = once * copies / layout.tensor
    came = min(moe.top_k, layout.data) if dispatch == "pair" else copies
    inside = (once * came + tokens * back) * (layout.tensor - 1) / layout.tensor
    if dispatch == "node" and layout.gpus > domain:
        nodes = layout.gpus / domain
        outside = once * places_touched(nodes, moe.top_k) / layout.tensor
        # A row crosses the network once a domain; NVLink carries it on, meanwhile.
        inside += once * copies / layout.tensor
    return outside, inside


def exchange_seconds(
    shape: ModelShape,
    cluster: Cluster,
    layout: Layout,
    tokens: float,
    *,
    fp8: bool,
    dispatch: Dispatch = "pair",
) -> float:
    """Rows to experts and back, one layer; `tokens` of one part. 0 where there is one part alone.
    The two links work at the same time."""
    outside, inside = exchange_bytes(
        shape, layout, tokens, fp8=fp8, domain=cluster.domain, dispatch=dispatch
    )
    return max(outside / cluster.link(layout.gpus), inside / cluster.inside)


def kv_transfer_seconds(sequence: float, link: float) -> float:
    """A prompt's KV from one pool to the other: its bytes over bytes/s."""
    return sequence / link
