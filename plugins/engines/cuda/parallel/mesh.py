"""Which rank does what: parts with batches of their own, and slices of a part. Knows no model.

Rank r of a layout TP_n x DEP_m is slice r % n of part r // n: a part's ranks are neighbours, which
share the fastest links. Slice s of every part forms one data group, over which experts are divided.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, final

import torch
import torch.distributed as dist

from tokenwire.core.cost.layout import ONE, Layout
from tokenwire.plugins.engines.cuda.parallel.group import ALONE, ALONE_HOST, Group, HostGroup

__all__ = ("JOIN_S", "SOLE", "Mesh", "beside", "join", "leave", "mesh_of")

JOIN_S = 600.0
"""How long ranks wait for each other, at start and in a collective."""


@final
@dataclass(frozen=True, slots=True)
class Mesh:
    layout: Layout
    rank: int
    tensor: Group
    """The slices of this part."""
    data: Group
    """This slice of every part."""
    tensor_host: HostGroup
    data_host: HostGroup
    world_host: HostGroup
    """Every rank of the layout."""

    @property
    def part(self) -> int:
        return self.rank // self.layout.tensor

    @property
    def slice(self) -> int:
        return self.rank % self.layout.tensor

    @property
    def is_leader(self) -> bool:
        """It schedules its part's batch."""
        return self.slice == 0


SOLE = Mesh(ONE, 0, ALONE, ALONE, ALONE_HOST, ALONE_HOST, ALONE_HOST)
"""One rank."""


def join(layout: Layout, device: torch.device) -> Mesh:
    """As torchrun's environment says (RANK, WORLD_SIZE, MASTER_ADDR, ...): all ranks of the layout
    call it. Tensors go over NCCL on GPUs, over gloo on CPUs; the host's facts always over gloo."""
    world = int(os.environ["WORLD_SIZE"])
    if world != layout.gpus:
        raise ValueError(
            f"layout {layout.name}: wanted {layout.gpus} ranks, and {world} were started"
        )
    is_cuda = device.type == "cuda"
    options: dict[str, Any] = {"device_id": device} if is_cuda else {}
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=timedelta(seconds=JOIN_S), **options
    )
    return mesh_of(layout, dist.get_rank(), is_cuda=is_cuda)


def mesh_of(layout: Layout, rank: int, *, is_cuda: bool = False) -> Mesh:
    """The groups of a layout over torch.distributed's ranks, which are all there."""
    n, m = layout.tensor, layout.data
    parts = [list(range(part * n, part * n + n)) for part in range(m)]
    columns = [list(range(slice_, n * m, n)) for slice_ in range(n)]
    tensor, tensor_host = _groups(parts, rank, is_cuda)
    data, data_host = _groups(columns, rank, is_cuda)
    _, world_host = _groups([list(range(n * m))], rank, False)
    return Mesh(layout, rank, tensor, data, tensor_host, data_host, world_host)


def beside(mesh: Mesh, *, is_cuda: bool = False) -> tuple[Group, HostGroup]:
    """The data group once more, and every rank's host, for a thread beside the one that runs
    steps. All ranks call it."""
    n, m = mesh.layout.tensor, mesh.layout.data
    columns = [list(range(slice_, n * m, n)) for slice_ in range(n)]
    data, _ = _groups(columns, mesh.rank, is_cuda)
    _, everyone = _groups([list(range(n * m))], mesh.rank, False)
    return data, everyone


def leave() -> None:
    """Before the process ends; nothing where it never joined."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _groups(every: list[list[int]], rank: int, is_cuda: bool) -> tuple[Group, HostGroup]:
    """The one of `every` that `rank` is in. All ranks make all groups: torch wants that."""
    found: tuple[Group, HostGroup] | None = None
    for ranks in every:
        if len(ranks) == 1:
            made: tuple[Any, Any] = None, None
        else:
            # Why two, be both of gloo: tensors go in the thread of the device's stream, the host's
            # facts in the loop's, and calls of two threads have no common order.
            wait = timedelta(seconds=JOIN_S)
            device = dist.new_group(ranks, backend="nccl" if is_cuda else "gloo", timeout=wait)
            made = device, dist.new_group(ranks, backend="gloo", timeout=wait)
        if rank in ranks:
            size, index = len(ranks), ranks.index(rank)
            found = Group(size, index, made[0]), HostGroup(size, index, made[1])
    assert found is not None
    return found
