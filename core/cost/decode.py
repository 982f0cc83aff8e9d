"""The least time of one decode step of a layout, and what it is made of. Pure; no search.

Per rank: max(computing, exchange) + sums. The experts' exchange hides behind computing (two half
batches, perfectly); the all-reduces of cut matrices hide behind nothing, since the next kernel
needs them. Launches, latencies of links, imbalance of experts and the sampler count nothing: a
bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from tokenwire.core.cost.exchange import Dispatch, all_reduce_seconds, exchange_seconds
from tokenwire.core.cost.gpus import Cluster
from tokenwire.core.cost.kernels import Work, decode_attention, grouped_gemm, weights_once
from tokenwire.core.cost.layout import ONE, Layout
from tokenwire.core.cost.shape import KvDtype, ModelShape, Precision
from tokenwire.core.cost.weights import BYTES, parameters

__all__ = ("Binding", "Step", "decode_step")

Binding: TypeAlias = Literal["bandwidth", "compute", "link"]


class Step(Struct, frozen=True):
    """Seconds."""

    attention: float
    dense: float
    """Projections, dense layers, shared experts and head."""
    experts: float
    exchange: float
    """Rows to experts and back; hidden behind the three above."""
    sums: float
    """All-reduces; hidden behind nothing."""
    compute_bound: float
    """Of computing, what operations and not bytes take."""

    @property
    def computing(self) -> float:
        return self.attention + self.dense + self.experts

    @property
    def seconds(self) -> float:
        return max(self.computing, self.exchange) + self.sums

    @property
    def binding(self) -> Binding:
        """What takes most of the step."""
        if self.exchange > self.computing or self.sums > self.computing:
            return "link"
        return "compute" if 2 * self.compute_bound > self.computing else "bandwidth"


def decode_step(
    shape: ModelShape,
    cluster: Cluster,
    layout: Layout = ONE,
    *,
    batch: float,
    context: int,
    precision: Precision = "bf16",
    kv_dtype: KvDtype = "bf16",
    query: int = 1,
    dispatch: Dispatch = "pair",
) -> Step:
    """`batch`: sequences of one part (`TP_n`: of all n GPUs; `DEP_m`: of each GPU); `context`
    tokens of each, `query` tokens of each at once (1, and drafts)."""
    gpu, tokens = cluster.gpu, batch * query
    times = {"attention": 0.0, "dense": 0.0, "experts": 0.0}
    bound = 0.0
    parts = _computing(
        shape, layout, batch, context, precision=precision, kv_dtype=kv_dtype, query=query
    )
    for name, work, compute in parts:
        seconds = work.seconds(gpu.bandwidth.value, gpu.peak(compute))
        times[name] += seconds
        bound += seconds if work.flops / gpu.peak(compute) >= seconds else 0
    rows = exchange_seconds(
        shape, cluster, layout, tokens, fp8=precision == "fp8", dispatch=dispatch
    )
    return Step(
        **times,
        exchange=shape.moe_layers * rows,
        sums=all_reduce_seconds(shape, cluster, layout, tokens),
        compute_bound=bound,
    )


Part: TypeAlias = tuple[Literal["attention", "dense", "experts"], Work, Literal["bf16", "fp8"]]


def _computing(
    shape: ModelShape,
    layout: Layout,
    batch: float,
    context: int,
    *,
    precision: Precision,
    kv_dtype: KvDtype,
    query: int,
) -> Iterator[Part]:
    """What one rank computes in a step: (to what it belongs, all layers of it, its products)."""
    held, size, tokens = parameters(shape, layout), BYTES[precision], batch * query
    linear: Literal["bf16", "fp8"] = "fp8" if precision == "fp8" else "bf16"
    full = shape.layers - shape.window_layers
    for layers, seen in ((full, context), (shape.window_layers, min(context, shape.window))):
        each = decode_attention(
            shape.attention,
            seen,
            dtype=kv_dtype,
            query=query,
            tensor=layout.tensor,
        )
        yield "attention", each.times(layers * batch), "bf16"
    for weights in (held.attention, held.dense, held.shared):
        yield "dense", weights_once(weights, tokens, size.linear), linear
    yield "dense", weights_once(held.head, tokens, size.head), "bf16"
    if (moe := shape.moe) is not None:
        each = grouped_gemm(
            moe.experts,
            moe.top_k,
            shape.hidden,
            moe.width / layout.tensor,
            tokens * layout.data,
            ranks=layout.data,
            weight=size.expert,
            activation=size.activation,
        )
        yield "experts", each.times(shape.moe_layers), linear
