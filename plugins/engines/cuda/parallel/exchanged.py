"""Tokens' rows to the ranks that hold their experts, once to each, and every expert's row back.

A token's rows are summed at home, in the order of its experts, so its bits are those of one device
with all experts. The host waits for the counts of each exchange: no CUDA graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.layers.dispatch import (
    Contiguous,
    Dispatched,
    Format,
    room_for,
)
from tokenwire.plugins.engines.cuda.parallel.group import ALONE, Group

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("ExchangedDispatcher",)


@final
@dataclass(frozen=True, slots=True)
class _Home:
    inverse: Tensor
    """[T, k] int32: where a pair's row stands among those that come back; -1: nowhere."""
    sent: list[int]
    """Pairs of this rank's tokens, by the rank of their experts."""
    received: list[int]
    """Pairs that came, by the rank of their tokens."""
    shared: list[int]
    """Pairs that came, by the slice that they came to: all of them are here."""


@final
class ExchangedDispatcher:
    """`slots` physical experts on each rank of `group`."""

    is_summed = False

    def __init__(
        self, ops: Ops, group: Group, slots: int, *, is_fp8: bool = False, slices: Group = ALONE
    ) -> None:
        """`is_fp8`: values travel in fp8, a scale for each 128 of them. `slices`: those that hold
        slices of the same experts, and dispatch other tokens; alone: there is nobody else."""
        self._ops, self._group, self._slots, self._is_fp8 = ops, group, slots, is_fp8
        self._slices = slices

    @property
    def yields(self) -> Format:
        return "contiguous"

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        ops, group, slices = self._ops, self._group, self._slices
        counts, order, inverse = ops.ep_plan(experts, group.size, self._slots)
        theirs = slices.all_gather(group.all_to_all(counts))
        (rows, pairs), *every = torch.cat((counts[None], theirs)).mT.tolist()
        their_rows, their_pairs = every[slices.index]
        values, scales = ops.fp8_quant(x) if self._is_fp8 else (x, None)
        wire = ops.ep_pack(values, order[: sum(rows)], experts, None, scales)
        came = group.all_to_all(wire, rows, their_rows)
        came = slices.all_gather_rows(came, [sum(each) for each, _ in every])
        shared = [sum(each) for _, each in every]
        found, its = room_for((sum(shared),), values, scales)
        offsets, at = ops.ep_unpack(
            came, found, experts.shape[1], group.index * self._slots, self._slots, self._is_fp8, its
        )
        return Contiguous(found, offsets, at, _Home(inverse, pairs, their_pairs, shared), its)

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        home = sent.home
        assert isinstance(home, _Home)
        lined = self._ops.ep_return(rows, sent.inverse, sum(home.shared))
        lined = self._slices.reduce_scatter_rows(lined, home.shared)
        back = self._group.all_to_all(lined, home.received, home.sent)
        y: Tensor = self._ops.ep_combine(back, home.inverse, weights, experts)
        return y
