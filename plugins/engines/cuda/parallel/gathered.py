"""Every rank gets all ranks' rows, computes those of its experts, and each sums its own from all.

Shapes hang on the step's span alone and the host waits for nothing: it can be captured in a CUDA
graph. More travels than in an exchange, unless a token has experts on nearly every rank anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from tokenwire.kernels.ep_dispatch.wire import wire_of
from tokenwire.plugins.engines.cuda.layers.dispatch import (
    Contiguous,
    Dispatched,
    Format,
    Masked,
    room_for,
)
from tokenwire.plugins.engines.cuda.parallel.group import ALONE, Group

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("GatheredDispatcher",)


@final
@dataclass(frozen=True, slots=True)
class _Home:
    weights: Tensor
    """[ranks * span, k] float32: of all ranks' tokens, slice by slice."""
    tokens: int
    """Of this rank."""


@final
class GatheredDispatcher:
    """`slots` physical experts on each rank of `group`."""

    is_summed = False

    def __init__(
        self,
        ops: Ops,
        group: Group,
        slots: int,
        yields: Format = "contiguous",
        *,
        is_fp8: bool = False,
        slices: Group = ALONE,
    ) -> None:
        """`is_fp8`: values travel in fp8, a scale for each 128 of them. `slices`: those that hold
        slices of the same experts, and dispatch other tokens; alone: there is nobody else."""
        self._ops, self._group, self._slots, self._is_fp8 = ops, group, slots, is_fp8
        self._slices = slices
        self._yields: Format = yields

    @property
    def yields(self) -> Format:
        return self._yields

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        """Raises ValueError where `span` is not what ranks agreed on."""
        ops, (tokens, width), top_k = self._ops, x.shape, experts.shape[1]
        span = tokens if self._group.size == 1 else span
        if not tokens <= span:
            raise ValueError(
                f"a step of {tokens} tokens, and ranks agreed on at most {span}: wanted the most "
                "tokens of any rank as the span, from whoever drives the ranks' steps"
            )
        order = torch.arange(span, dtype=torch.int32, device=x.device)
        order[tokens:] = -1
        values, scales = ops.fp8_quant(x) if self._is_fp8 else (x, None)
        wire = self._group.all_gather(ops.ep_pack(values, order, experts, weights, scales))
        wire = self._slices.all_gather(wire).flatten(0, 2)
        form = wire_of(width, x.dtype, top_k, has_weights=True, is_fp8=self._is_fp8)
        home = _Home(wire[:, form.weights : form.used].contiguous().view(torch.float32), tokens)
        every, first = wire.shape[0], self._group.index * self._slots
        is_masked = self._yields == "masked"
        shape = (self._slots, every) if is_masked else (every * min(top_k, self._slots),)
        room, its = room_for(shape, values, scales)
        offsets, at = ops.ep_unpack(wire, room, top_k, first, self._slots, self._is_fp8, its)
        if is_masked:
            return Masked(room, offsets.diff(), at, home, its)
        return Contiguous(room, offsets, at, home, its)

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        home = sent.home
        assert isinstance(home, _Home)
        sums = self._ops.moe_combine(rows.view(-1, rows.shape[-1]), sent.inverse, home.weights)
        sums = sums.unflatten(0, (self._slices.size, self._group.size, -1))
        mine = self._slices.reduce_scatter(sums)
        return self._group.reduce_scatter(mine)[: home.tokens]
