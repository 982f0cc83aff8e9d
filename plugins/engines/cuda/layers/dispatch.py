"""How tokens' rows reach experts and come back, and one device that has them all. Knows no weight.

A dispatcher says which of two formats it yields, and experts take both: `Contiguous`, rows end to
end in the order of the experts, for any number of tokens; `Masked`, room for as many rows as an
expert can get, whose shapes hang on the number of tokens alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, final

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = ("Contiguous", "Dispatched", "Dispatcher", "Format", "LocalDispatcher", "Masked")

Format = Literal["contiguous", "masked"]


@final
@dataclass(frozen=True, slots=True)
class Contiguous:
    rows: Tensor
    """[R, H]."""
    offsets: Tensor
    """[E + 1] int32: expert e has rows offsets[e] to offsets[e + 1]."""
    inverse: Tensor
    """[T, k] int32: where a token's j-th row stands among `rows`; -1: nowhere."""


@final
@dataclass(frozen=True, slots=True)
class Masked:
    rows: Tensor
    """[E, C, H]."""
    counts: Tensor
    """[E] int32: how many of an expert's C rows there are; what follows them may be anything."""
    inverse: Tensor
    """[T, k] int32: where a token's j-th row stands among all E * C; -1: nowhere."""


Dispatched: TypeAlias = Contiguous | Masked


class Dispatcher(Protocol):
    @property
    def yields(self) -> Format: ...

    def dispatch(self, x: Tensor, experts: Tensor, span: int = 0) -> Dispatched:
        """x [T, H], experts [T, k] int32, physical ids of all there are -> rows of those that are
        here. -1: a pair that goes nowhere. `span`: as Batch's; T where there is one rank."""
        ...

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor) -> Tensor:
        """`sent`'s rows, in its format, after their experts; weights [T, k] float32 -> [T, H]."""
        ...


@final
class LocalDispatcher:
    """Every expert is here."""

    def __init__(self, ops: Ops, experts: int, yields: Format = "contiguous") -> None:
        self._ops, self._experts = ops, experts
        self._yields: Format = yields

    @property
    def yields(self) -> Format:
        return self._yields

    def dispatch(self, x: Tensor, experts: Tensor, span: int = 0) -> Dispatched:
        rows, offsets, inverse = self._ops.moe_permute(x, experts, self._experts)
        if self._yields == "contiguous":
            return Contiguous(rows, offsets, inverse)
        capacity = x.shape[0]
        where = experts.long()
        places = where * capacity + inverse - offsets[where]
        room = x.new_zeros(self._experts * capacity, x.shape[1])
        room[places.flatten()] = x.repeat_interleave(experts.shape[1], dim=0)
        return Masked(
            room.view(self._experts, capacity, -1), offsets.diff(), places.to(torch.int32)
        )

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor) -> Tensor:
        y: Tensor = self._ops.moe_combine(rows.view(-1, rows.shape[-1]), sent.inverse, weights)
        return y
