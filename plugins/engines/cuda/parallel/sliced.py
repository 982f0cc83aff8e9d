"""Rows of a part whose slices all hold the same tokens: each slice sends its own share of them.

Slices of a part hold slices of the same experts, and are near each other; parts may be far apart.
So the n-th of a part's rows leaves from each slice, and where it arrives the slices gather what
each of them got (`slices` of the dispatcher inside): between parts every row travels once.
"""

from __future__ import annotations

from typing import final

from torch import Tensor
from torch.nn.functional import pad

from tokenwire.plugins.engines.cuda.layers.dispatch import Dispatched, Dispatcher, Format
from tokenwire.plugins.engines.cuda.parallel.group import Group

__all__ = ("SlicedDispatcher",)

NOWHERE = -1
"""The expert of a row that makes shares even."""


@final
class SlicedDispatcher:
    """`inner` with the same `slices` brings a share's rows to all slices of a part and gives back
    their sum; here shares are cut, and put together again."""

    is_summed = True

    def __init__(self, inner: Dispatcher, slices: Group) -> None:
        self._inner, self._slices = inner, slices

    @property
    def yields(self) -> Format:
        return self._inner.yields

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        shares = self._share(x), self._share(experts, NOWHERE), self._share(weights)
        return self._inner.dispatch(*shares, -(-span // self._slices.size))

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        shares = self._share(weights), self._share(experts, NOWHERE)
        y = self._inner.combine(rows, sent, *shares)
        return self._slices.all_gather(y).flatten(0, 1)[: len(experts)]

    def _share(self, x: Tensor, fill: int = 0) -> Tensor:
        """[T, ...] -> [ceil(T / n), ...]. Why of one size: ops need not bear a share of no rows
        where there is a token, and slices can gather them."""
        size = -(-len(x) // self._slices.size)
        mine = x[self._slices.index * size :][:size]
        lacking = size - len(mine)
        return pad(mine, (0, 0, 0, lacking), value=fill) if lacking else mine
