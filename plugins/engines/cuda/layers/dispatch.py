"""How tokens' rows reach experts and come back, and one device that has them all. Knows no weight.

A dispatcher says which of two formats it yields, and experts take both: `Contiguous`, rows end to
end in the order of the experts, for any number of tokens; `Masked`, room for as many rows as an
expert can get, whose shapes hang on the number of tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, final

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tokenwire.kernels.ops import Ops

__all__ = (
    "Contiguous",
    "Dispatched",
    "Dispatcher",
    "Format",
    "LocalDispatcher",
    "Masked",
    "room_for",
)

Format = Literal["contiguous", "masked"]


@final
@dataclass(frozen=True, slots=True)
class Contiguous:
    rows: Tensor
    """[R, H]; those after the last expert's may be anything."""
    offsets: Tensor
    """[E + 1] int32: expert e has rows offsets[e] to offsets[e + 1]."""
    inverse: Tensor
    """[T, k] int32: where the j-th row of a token that is here stands among `rows`; -1: nowhere."""
    home: object = None
    """What the dispatcher needs to bring rows back."""
    scales: Tensor | None = None
    """[R, ceil(H / 128)] float32: rows are float8_e4m3fn, as the op fp8_quant gives them."""


@final
@dataclass(frozen=True, slots=True)
class Masked:
    rows: Tensor
    """[E, C, H]."""
    counts: Tensor
    """[E] int32: how many of an expert's C rows there are; what follows them may be anything."""
    inverse: Tensor
    """[T, k] int32: where a token's j-th row stands among all E * C; -1: nowhere."""
    home: object = None
    scales: Tensor | None = None
    """[E, C, ceil(H / 128)]: as Contiguous has them."""


Dispatched: TypeAlias = Contiguous | Masked


def room_for(
    shape: Sequence[int], x: Tensor, scales: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Memory for so many rows like those of x, and for their scales where it has some."""
    room = x.new_empty(*shape, x.shape[1])
    return room, None if scales is None else scales.new_empty(*shape, scales.shape[1])


class Dispatcher(Protocol):
    @property
    def yields(self) -> Format: ...

    @property
    def is_summed(self) -> bool:
        """Whether `combine` gives sums over the slices of a part, the same on each; else each
        slice's summand."""
        ...

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        """x [T, H], experts [T, k] int32, physical ids of all there are, weights [T, k] float32 ->
        rows of those experts that are here, whoever's tokens they are. -1: a pair that goes
        nowhere. `span`: as Batch's; it is read where there are several ranks."""
        ...

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        """`sent`'s rows, in its format, after their experts -> [T, H] of this rank's own tokens.
        `weights` as they were dispatched; `experts` [T, k] int32: logical ids, in whose order a
        token's rows are added where they are added in one place."""
        ...


@final
class LocalDispatcher:
    """Every expert is here."""

    is_summed = False

    def __init__(self, ops: Ops, experts: int, yields: Format = "contiguous") -> None:
        self._ops, self._experts = ops, experts
        self._yields: Format = yields

    @property
    def yields(self) -> Format:
        return self._yields

    def dispatch(self, x: Tensor, experts: Tensor, weights: Tensor, span: int = 0) -> Dispatched:
        rows, offsets, inverse = self._ops.moe_permute(x, experts, self._experts)
        if self._yields == "contiguous":
            return Contiguous(rows, offsets, inverse)
        capacity = x.shape[0]
        where, there = experts.clamp(min=0).long(), inverse >= 0
        places = where * capacity + inverse - offsets[where]
        room = x.new_zeros(self._experts * capacity + 1, x.shape[1])
        # Why a row more: pairs that go nowhere need a place too, as no shape may hang on them.
        to = torch.where(there, places, room.shape[0] - 1)
        room[to.flatten()] = x.repeat_interleave(experts.shape[1], dim=0)
        return Masked(
            room[:-1].view(self._experts, capacity, -1),
            offsets.diff(),
            torch.where(there, places, -1).int(),
        )

    def combine(self, rows: Tensor, sent: Dispatched, weights: Tensor, experts: Tensor) -> Tensor:
        y: Tensor = self._ops.moe_combine(rows.view(-1, rows.shape[-1]), sent.inverse, weights)
        return y
