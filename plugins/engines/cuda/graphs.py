"""Decode steps of fixed sizes, captured once as CUDA graphs and replayed. Knows no sequence.

A step is padded to the next size: padding rows have no keys and write no KV. Without a GPU nothing
is captured, and the same padded tensors go through the network: so the padding is proven there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.kernels.attention.batch import AttentionBatch
from tokenwire.plugins.engines.cuda.batch import Batch
from tokenwire.plugins.engines.cuda.layers.activation import GATES
from tokenwire.plugins.engines.cuda.models.config import ModelConfig

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("DecodeGraphs", "captured", "graph_sizes", "has_graphs")

Forward: TypeAlias = Callable[[Batch], Tensor]

ALWAYS = ("matmul", "rms_norm", "add_rms_norm", "rope")
ATTENTION, LATENT = ("kv_write", "attention_decode"), ("mla_write", "mla_decode")
MIXED = ("moe_route", "moe_permute", "moe_combine", "grouped_matmul", "ep_pack", "ep_unpack")
EIGHT_BITS = ("fp8_quant", "silu_mul_quant", "fp8_matmul")


def captured(config: ModelConfig, *, keeps_fp8: bool = True) -> frozenset[str]:
    """Ops of a network's decode step. `keeps_fp8`: fp8 weights stay so."""
    found = {*ALWAYS, GATES[config.activation], *(LATENT if config.mla else ATTENTION)}
    kind = None if config.quantisation is None else config.quantisation.method
    quantised = keeps_fp8 and kind == "fp8"
    if quantised:
        found |= set(EIGHT_BITS)
    if config.mixture is not None:
        found |= {*MIXED, *(("fp8_grouped_matmul",) if quantised else ())}
    return frozenset(found)


def has_graphs(
    asked: bool | None,
    device: torch.device,
    ops: Ops,
    config: ModelConfig,
    *,
    keeps_fp8: bool = True,
) -> bool:
    """`asked` None: on a GPU, where every op of a decode step can be captured. Raises ConfigError
    where graphs are asked for and one cannot."""
    if device.type != "cuda":
        return bool(asked)
    names = captured(config, keeps_fp8=keeps_fp8)
    against = [
        f"{choice.op} by {choice.name}"
        for choice in ops.choices
        if choice.op in names and not choice.graph_safe
    ]
    if asked and against:
        raise ConfigError(
            f"engine cuda: graphs: {', '.join(against)} cannot be captured in a CUDA graph: set "
            "graphs to false, or name other kernels"
        )
    return not against if asked is None else asked


def graph_sizes(largest: int) -> tuple[int, ...]:
    """1, 2, 4, then every 8 up to 64, every 16 up to 256, every 32 on; the largest is one."""
    steps = [1, 2, 4, *range(8, 64, 8), *range(64, 256, 16), *range(256, largest + 1, 32)]
    return (*(size for size in steps if size < largest), largest)


@final
@dataclass(frozen=True, slots=True)
class _Graph:
    batch: Batch
    hidden: Tensor
    replay: Callable[[], None] | None


@final
class DecodeGraphs:
    def __init__(
        self,
        forward: Forward,
        *,
        sizes: Sequence[int],
        width: int,
        groups: int,
        block_size: int,
        max_kv: int,
        device: torch.device,
        has_adapters: bool,
        has_span: bool = False,
    ) -> None:
        """`has_span`: parts share experts, and all pad to the same size."""
        self._forward = forward
        self._sizes = tuple(sizes)
        self._width, self._groups = width, groups
        self._block_size, self._max_kv = block_size, max_kv
        self._device = device
        self._has_adapters = has_adapters
        self._has_span = has_span
        self._graphs: dict[int, _Graph] = {}
        self._pool: Any = None

    def capture(self) -> None:
        """All sizes, the largest first, which share one memory pool. Nothing, without a GPU."""
        if self._device.type != "cuda":
            return
        for size in reversed(self._sizes):
            batch = self._blank(size)
            # Why before: kernels are compiled and workspaces made outside of the capture.
            self._forward(batch)
            torch.cuda.synchronize(self._device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                hidden = self._forward(batch)
            self._pool = self._pool or graph.pool()
            self._graphs[size] = _Graph(batch, hidden, graph.replay)

    def fits(self, batch: Batch) -> bool:
        count, span = len(batch.ids), batch.span
        if batch.decode_tokens != count or count > self._sizes[-1]:
            return False
        # Why so: what parts exchange has the shape of their span, be it in a graph or not.
        return not span or (span in self._sizes and count <= span)

    def run(self, batch: Batch) -> Tensor:
        """[T, H] of a decode batch that fits: the graph's own memory, good until the next run."""
        count = len(batch.ids)
        size = batch.span or next(size for size in self._sizes if size >= count)
        graph = self._graphs.get(size)
        if graph is not None and graph.replay is not None:
            self._fill(graph.batch, batch, count)
            graph.replay()
            return graph.hidden[:count]
        padded = self._blank(size)
        self._fill(padded, batch, count)
        return self._forward(padded)[:count]

    def _blank(self, size: int) -> Batch:
        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=self._device)

        nowhere = tuple(zeros(size) - 1 for _ in range(self._groups))
        cu_q = torch.arange(size + 1, dtype=torch.int32, device=self._device)
        decode = tuple(
            AttentionBatch(
                cu_q=cu_q,
                kv_lens=zeros(size, dtype=torch.int32),
                block_table=zeros(size, self._width, dtype=torch.int32),
                block_size=self._block_size,
                max_q=1,
                max_kv=self._max_kv,
            )
            for _ in range(self._groups)
        )
        return Batch(
            ids=zeros(size),
            positions=zeros(size),
            slots=nowhere,
            decode=decode,
            prefill=(None,) * self._groups,
            decode_tokens=size,
            logit_rows=zeros(size),
            span=size if self._has_span else 0,
            adapters=zeros(size, dtype=torch.int32) if self._has_adapters else None,
        )

    def _fill(self, into: Batch, batch: Batch, count: int) -> None:
        for place, values, rest in (
            (into.ids, batch.ids, 0),
            (into.positions, batch.positions, 0),
            *zip(into.slots, batch.slots, (-1,) * self._groups, strict=True),
        ):
            place[:count].copy_(values)
            place[count:].fill_(rest)
        if into.adapters is not None:
            into.adapters.zero_()
            if batch.adapters is not None:
                into.adapters[:count].copy_(batch.adapters)
        for theirs, ours in zip(into.decode, batch.decode, strict=True):
            assert theirs is not None
            assert ours is not None
            theirs.kv_lens[:count].copy_(ours.kv_lens)
            theirs.kv_lens[count:].zero_()
            theirs.block_table[count:].zero_()
            theirs.block_table[:count, : ours.block_table.shape[1]].copy_(ours.block_table)
            theirs.block_table[:count, ours.block_table.shape[1] :].zero_()
