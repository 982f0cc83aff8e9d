"""Collectives among ranks that share work: tensors on the device, small facts on the host.

A group of one does nothing, and needs no torch.distributed, unless it is given a group of torch's.
Sums are taken in the order of the ranks where that can be had, so that every rank has the same
bits. Knows no model and no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, final

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

__all__ = ("ALONE", "ALONE_HOST", "FP8", "Group", "HostGroup", "reduce_in_order")

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
"""Kinds that gloo does not know: their bytes go."""
gather: Callable[..., Any] = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
"""torch's older name of it is one that newer ones warn of."""


@final
class Group:
    """Of `size` ranks, of which this one is the `index`-th. Every call is one that all of them
    make, in the same order."""

    def __init__(self, size: int = 1, index: int = 0, process_group: Any = None) -> None:
        self.size, self.index = size, index
        self.process_group = process_group
        """torch's; None: there is one rank, which talks to nobody."""
        self._is_alone = size == 1 and process_group is None

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum over ranks, in x's own memory; the same bits on every rank."""
        if not self._is_alone:
            dist.all_reduce(x, group=self.process_group)
        return x

    def sum_in_order(self, x: Tensor) -> Tensor:
        """As all_reduce, added up in the order of the ranks, in float32: a row's bits do not hang
        on how many rows there are, as they may where a library picks its way by size."""
        return x if self._is_alone else reduce_in_order(self.all_gather(x))

    def all_gather(self, x: Tensor) -> Tensor:
        """[...] of one shape everywhere -> [size, ...]."""
        if self._is_alone:
            return x.unsqueeze(0)
        found = torch.empty((self.size, *x.shape), dtype=x.dtype, device=x.device)
        gather(_plain(found).view(-1), _plain(x.contiguous()).view(-1), group=self.process_group)
        return found

    def reduce_scatter(self, x: Tensor) -> Tensor:
        """[size, ...] -> [...]: the sum over ranks of their x[index], added up in the order of the
        ranks, in float32."""
        if self._is_alone:
            return x.squeeze(0)
        mine = torch.empty_like(x)
        dist.all_to_all_single(mine, x.contiguous(), group=self.process_group)
        return reduce_in_order(mine)

    def all_to_all(
        self, x: Tensor, sent: Sequence[int] | None = None, received: Sequence[int] | None = None
    ) -> Tensor:
        """Rows x [sum of sent, ...], the first sent[0] for rank 0 and so on -> rows by sender,
        [sum of received, ...]. Neither given: as many for each."""
        if self._is_alone:
            return x
        rows = x.shape[0] if received is None else sum(received)
        found = torch.empty((rows, *x.shape[1:]), dtype=x.dtype, device=x.device)
        dist.all_to_all_single(
            _plain(found),
            _plain(x.contiguous()),
            None if received is None else list(received),
            None if sent is None else list(sent),
            group=self.process_group,
        )
        return found

    def all_gather_rows(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows x [counts[index], ...], another number on each rank -> everyone's, rank by rank."""
        if self._is_alone:
            return x
        copies = x.expand(self.size, *x.shape).flatten(0, 1)
        return self.all_to_all(copies, [len(x)] * self.size, counts)

    def reduce_scatter_rows(self, x: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows x [sum of counts, ...], the first counts[0] for rank 0 and so on -> [counts[index],
        ...]: the sum over ranks of their rows for this one, as reduce_scatter adds up."""
        if self._is_alone:
            return x
        count = counts[self.index]
        mine = self.all_to_all(x, counts, [count] * self.size)
        return reduce_in_order(mine.view(self.size, count, *x.shape[1:]))

    def broadcast(self, x: Tensor, source: int = 0) -> Tensor:
        """The `source`-th rank's, in x's own memory."""
        if not self._is_alone:
            dist.broadcast(_plain(x), group=self.process_group, group_src=source)
        return x


@final
class HostGroup:
    """As `Group`, of what the host knows; over gloo, whatever the devices talk."""

    def __init__(self, size: int = 1, index: int = 0, process_group: Any = None) -> None:
        self.size, self.index = size, index
        self.process_group = process_group

    def all_gather_ints(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """[k] of one length everywhere -> [size, k]."""
        if self.size == 1:
            return values[None]
        found = torch.empty((self.size, len(values)), dtype=torch.int64)
        gather(found.view(-1), torch.from_numpy(values), group=self.process_group)
        every: NDArray[np.int64] = found.numpy()
        return every

    def broadcast_bytes(self, data: bytes | None = None, source: int = 0) -> bytes:
        """What the `source`-th rank gives; the others give None."""
        if self.size == 1:
            assert data is not None
            return data
        size = torch.tensor([0 if data is None else len(data)])
        dist.broadcast(size, group=self.process_group, group_src=source)
        if self.index == source:
            assert data is not None
            held = torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8)
        else:
            held = torch.empty(max(int(size), 1), dtype=torch.uint8)
        dist.broadcast(held, group=self.process_group, group_src=source)
        return bytes(held.numpy())[: int(size)]

    def least(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """[k] -> the least of all ranks, each for itself."""
        found: NDArray[np.int64] = self.all_gather_ints(values).min(axis=0)
        return found

    def barrier(self, timeout: timedelta | None = None) -> None:
        """Until every rank is here. Raises RuntimeError where one is not in time."""
        if self.size > 1:
            work = dist.all_reduce(torch.zeros(1), group=self.process_group, async_op=True)
            assert work is not None
            work.wait(timeout) if timeout is not None else work.wait()


def reduce_in_order(parts: Tensor) -> Tensor:
    """[size, ...] -> [...], the first and the second added, then the third, in float32."""
    total = parts[0].float()
    for part in parts[1:]:
        total = total + part
    return total.to(parts.dtype)


def _plain(x: Tensor) -> Tensor:
    return x.view(torch.uint8) if x.dtype in FP8 else x


ALONE = Group()
ALONE_HOST = HostGroup()
