"""Rows to experts of other ranks by the package sgl-deep-ep, in its high-throughput form.

It packs, sends and unpacks by itself, and sums over ranks on the way back. Nothing here is imported
from it until a network is built that wants it, and it is never chosen unasked.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from tokenwire.core.errors import ConfigError
from tokenwire.kernels.ep_dispatch import DEEP_EP, deep_ep_reason
from tokenwire.kernels.op import Signature
from tokenwire.plugins.engines.cuda.layers.dispatch import Contiguous, Dispatched, Format
from tokenwire.plugins.engines.cuda.layers.site import Site
from tokenwire.plugins.engines.cuda.parallel.group import Group

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("DeepEpDispatcher", "deep_ep_dispatcher")


@final
@dataclass(frozen=True, slots=True)
class _Home:
    weights: Tensor
    """[rows that came, k] float32."""
    handle: Any
    """What the package brings rows back by."""


def deep_ep_dispatcher(site: Site, slots: int) -> DeepEpDispatcher:
    """Of a rank with so many physical experts; all parts call it. Raises ConfigError where the
    package cannot serve here."""
    device, dtype, group = site.device, site.dtype, site.mesh.data
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    reason = deep_ep_reason(Signature(device=device.type, capability=capability, dtype=dtype))
    if not reason and group.size == 1:
        reason = "there is one rank"
    if reason:
        raise ConfigError(f"dispatcher: deep_ep does not apply: {reason}; choose auto")
    if DEEP_EP[0] not in site.once:
        site.once[DEEP_EP[0]] = open_buffer(group, site.config.hidden * dtype.itemsize)
    return DeepEpDispatcher(site.ops, site.once[DEEP_EP[0]], group.size, slots)


def open_buffer(group: Group, row_bytes: int) -> Any:
    """The package's memory for rows on their way."""
    kind = import_module(DEEP_EP[1]).Buffer
    near = far = 0
    for config in (kind.get_dispatch_config(group.size), kind.get_combine_config(group.size)):
        near = max(near, config.get_nvl_buffer_size_hint(row_bytes, group.size))
        far = max(far, config.get_rdma_buffer_size_hint(row_bytes, group.size))
    return kind(group.process_group, near, far)


@final
class DeepEpDispatcher:
    """`slots` physical experts on each of `ranks`; `buffer`: a deep_ep.Buffer of theirs."""

    is_summed = False

    def __init__(self, ops: Ops, buffer: Any, ranks: int, slots: int) -> None:
        self._ops, self._buffer, self._ranks, self._slots = ops, buffer, ranks, slots

    @property
    def yields(self) -> Format:
        return "contiguous"

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        buffer, wide = self._buffer, experts.long()
        per_rank, per_node, per_expert, goes, _ = buffer.get_dispatch_layout(
            wide, self._ranks * self._slots
        )
        came, local, theirs, counts, handle, _ = buffer.dispatch(
            x,
            topk_idx=wide,
            topk_weights=weights,
            num_tokens_per_rank=per_rank,
            num_tokens_per_rdma_rank=per_node,
            is_token_in_rank=goes,
            num_tokens_per_expert=per_expert,
        )
        rows, offsets, inverse = self._ops.moe_permute(came, local.int(), self._slots)
        return Contiguous(rows[: sum(counts)], offsets, inverse, _Home(theirs, handle))

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        home = sent.home
        assert isinstance(home, _Home)
        sums = self._ops.moe_combine(rows, sent.inverse, home.weights)
        y: Tensor = self._buffer.combine(sums, home.handle)[0]
        return y
