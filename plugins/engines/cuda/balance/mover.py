"""Weights of experts on their way to other ranks: staged while the old ones serve, then switched.

Knows slots as bytes alone. `fetch` runs in a thread of its own, over groups of its own; `switch` is
called between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import torch
import torch.distributed as dist
from torch import Tensor

from tokenwire.plugins.engines.cuda.parallel.group import FP8, Group
from tokenwire.plugins.engines.cuda.policy.experts.moves import Move, Stage

__all__ = ("Mover", "SlotTensors")

SlotTensors: TypeAlias = Callable[[int, int], Sequence[Tensor]]
"""(layer of the mixture, slot of this rank) -> everything that an expert is there, in one order."""


@final
class Mover:
    def __init__(self, group: Group, slots_per_rank: int, tensors: SlotTensors) -> None:
        """`group`: one that nobody else uses."""
        self._group, self._room, self._tensors = group, slots_per_rank, tensors
        self._staged: dict[tuple[int, int], list[Tensor]] = {}
        """By layer and physical slot of this rank."""
        self._stream: Any = None

    @property
    def expert_bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors(0, 0))

    def fetch(self, stage: Stage) -> None:
        """Sends and receives what the stage moves between ranks; waits for all of it."""
        device = self._tensors(0, 0)[0].device
        if device.type != "cuda":
            self._exchange(stage)
            return
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)
        with torch.cuda.device(device), torch.cuda.stream(self._stream):
            self._exchange(stage)
            self._stream.synchronize()

    def switch(self, stage: Stage) -> None:
        """Writes the stage's layers: copies within this rank are read before any slot is."""
        mine = [move for move in stage.copies if move.target_rank == self._group.index]
        copied = [(move, [each.clone() for each in self._slot(move, move.source)]) for move in mine]
        for move, values in copied:
            self._write(move.layer, move.target, values)
        for key in [key for key in self._staged if key[0] in stage.layers]:
            self._write(*key, self._staged.pop(key))

    def _exchange(self, stage: Stage) -> None:
        me, ops = self._group.index, []
        for move in stage.fetches:
            if move.source_rank == me:
                for each in self._slot(move, move.source):
                    ops.append(self._op(dist.isend, each, move.target_rank))
            elif move.target_rank == me:
                fresh = [torch.empty_like(each) for each in self._slot(move, move.target)]
                self._staged[move.layer, move.target] = fresh
                for each in fresh:
                    ops.append(self._op(dist.irecv, each, move.source_rank))
        if ops:
            for work in dist.batch_isend_irecv(ops):
                work.wait()

    def _op(self, kind: Callable[..., Any], tensor: Tensor, peer: int) -> dist.P2POp:
        plain = tensor.view(torch.uint8) if tensor.dtype in FP8 else tensor
        return dist.P2POp(kind, plain, group=self._group.process_group, group_peer=peer)

    def _slot(self, move: Move, physical: int) -> Sequence[Tensor]:
        return self._tensors(move.layer, physical % self._room)

    def _write(self, layer: int, physical: int, values: Sequence[Tensor]) -> None:
        for place, value in zip(self._tensors(layer, physical % self._room), values, strict=True):
            place.copy_(value)
