"""One layer's experts on the device: which physical expert a token takes, and how many each got.

The choice is `policy/experts/replicas.py`'s, in torch; a tensor is written anew when experts move,
and never replaced, so that a captured CUDA graph sees it. Knows no weight.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import torch
from torch import Tensor

from tokenwire.plugins.engines.cuda.policy.experts.placement import Placement
from tokenwire.plugins.engines.cuda.policy.experts.replicas import nearest

__all__ = ("Counter", "ExpertTable", "Replicas", "mixed")

Replicas: TypeAlias = Literal["nearest", "spread", "position"]

FIRST, SECOND, STRIDE = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _shifted(x: Tensor, by: int) -> Tensor:
    """As of unsigned words, which torch cannot shift."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def mixed(*keys: Tensor | int) -> Tensor:
    """int64 keys, broadcast -> the bits of `replicas.py`'s hash, as int64."""
    state: Tensor | None = None
    for key in keys:
        each = torch.as_tensor(key, dtype=torch.int64)
        state = each + _signed(STRIDE) if state is None else state + _signed(STRIDE) + each
        state = (state ^ _shifted(state, 30)) * _signed(FIRST)
        state = (state ^ _shifted(state, 27)) * _signed(SECOND)
        state = state ^ _shifted(state, 31)
    assert state is not None
    return state


@final
class Counter:
    """Tokens of each physical expert, layer by layer, of the steps since they were last taken."""

    def __init__(self, layers: int, slots: int, steps: int, device: torch.device) -> None:
        """At most `steps` of them."""
        self.now = torch.zeros(layers, slots + 1, dtype=torch.int32, device=device)
        """[layers, slots + 1] of this step; the last column has pairs that went nowhere."""
        self._ring = torch.zeros(steps, layers, slots, dtype=torch.int32, device=device)
        self._held = 0

    def push(self) -> None:
        """The step is over. No wait for the device."""
        if self._held == len(self._ring):
            raise RuntimeError(f"wanted at most {self._held} steps before they are taken, got more")
        self._ring[self._held].copy_(self.now[:, :-1])
        self.now.zero_()
        self._held += 1

    def take(self) -> tuple[Tensor, torch.cuda.Event | None]:
        """[steps, layers, slots] on the host, the oldest first; to be read when the event, if
        there is one, has come."""
        some, self._held = self._ring[: self._held], 0
        if some.device.type != "cuda":
            return some.clone(), None
        host = torch.empty(some.shape, dtype=some.dtype, pin_memory=True)
        host.copy_(some, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return host, event


@final
class ExpertTable:
    """Of one layer, for the tokens of one rank."""

    def __init__(
        self,
        placement: Placement,
        layer: int,
        rank: int,
        counted: Tensor,
        *,
        replicas: Replicas = "nearest",
    ) -> None:
        """`rank`: of those that share the experts. `counted` [slots + 1] int32: a Counter's row.
        The most replicas that an expert may ever have are those that all free slots give."""
        layout = placement.layout
        self._layer, self._rank, self._replicas = layer, rank, replicas
        self._slots = layout.slots
        self._counted = counted
        most = layout.slots - layout.experts + 1
        width = 1 if replicas == "nearest" else most
        device = counted.device
        self._places = torch.zeros(layout.experts, width, dtype=torch.int32, device=device)
        self._counts = torch.ones(layout.experts, dtype=torch.int64, device=device)
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        self.put(placement)

    def put(self, placement: Placement) -> None:
        """From the next step on."""
        if self._replicas == "nearest":
            found = nearest(placement, self._rank)[self._layer][:, None]
        else:
            found = placement.logical_to_physical[self._layer]
        places = torch.from_numpy(found.copy()).to(torch.int32)
        self._places[:, : places.shape[1]].copy_(places)
        self._counts.copy_(torch.from_numpy(placement.counts[self._layer].copy()))

    def physical(self, experts: Tensor, positions: Tensor) -> Tensor:
        """experts [T, k] int32, logical ids, -1: nowhere; positions [T] int64 -> physical ids
        [T, k] int32, which are counted."""
        known = experts.clamp(min=0).long()
        if self._replicas == "nearest":
            found = self._places[known, 0]
        else:
            found = self._places[known, self._turn(known, positions)]
        found = found.masked_fill(experts < 0, -1)
        bins = torch.where(found < 0, self._slots, found).flatten().long()
        ones = torch.ones((), dtype=torch.int32, device=bins.device).expand(len(bins))
        self._counted.scatter_add_(0, bins, ones)
        return found

    def _turn(self, experts: Tensor, positions: Tensor) -> Tensor:
        """[T, k]: which of its replicas, as `spread` and `by_position` have it."""
        if self._replicas == "position":
            keys = mixed(positions)
        else:
            keys = mixed(torch.arange(len(experts), device=experts.device), self._step)
            self._step += 1
        words, counts = mixed(keys[:, None], experts), self._counts[experts]
        # Why in halves: the words are unsigned, and torch's remainder is of signed ones.
        return (_shifted(words, 1) % counts * 2 + (words & 1)) % counts
