"""Times what ranks exchange: rows from each to each within domains and between them, and sums of a
part. A second at most. Knows no model and judges nothing.

Every rank makes the same calls in the same order: what is tried next depends on the layout and on
times that all have heard. A time is the slowest rank's, the median of some after one to warm up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, final

import numpy as np
import torch
from torch import Tensor

from tokenwire.core.cost.exchange import all_reduce_bytes
from tokenwire.core.cost.links import Links, Pair, Sample, Way
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh

__all__ = ("BUDGET_S", "Exchange", "measure", "measure_sums")

ROWS: Final = (1, 16, 128, 1024)
"""To each other rank: from a step of few tokens to one of prompts."""
MOST_BYTES: Final = 64 << 20
"""Of one rank's message to all."""
REPEATS: Final = 5
BUDGET_S: Final = 1.0


class Exchange(Protocol):
    """What of a Group is timed."""

    def all_to_all(
        self, x: Tensor, sent: Sequence[int] | None = None, received: Sequence[int] | None = None
    ) -> Tensor: ...


def measure(
    mesh: Mesh,
    row_bytes: int,
    domain: int,
    device: torch.device,
    *,
    data: Exchange | None = None,
    budget_s: float = BUDGET_S,
) -> Links:
    """All ranks of the mesh call it. `data`: what stands for the mesh's data group."""
    timer = _Timer(mesh, row_bytes, domain, device, data=data or mesh.data, budget_s=budget_s)
    within = list(timer.exchanges("within", timer.same_domain))
    across = list(timer.exchanges("across", timer.other_domain))
    sums = list(timer.sums())
    first = (within or across or sums)[:1]
    return Links(
        mesh.layout.gpus,
        domain,
        row_bytes,
        _device(device),
        within=_best(within),
        across=_best(across),
        sums=_best(sums),
        latency=first[0].seconds if first else 0.0,
        samples=(*within, *across, *sums),
        pairs=tuple(timer.pairs(across[-1].rows)) if across else (),
    )


def measure_sums(
    mesh: Mesh, row_bytes: int, domain: int, device: torch.device, *, budget_s: float = BUDGET_S
) -> tuple[float | None, tuple[Sample, ...]]:
    """All-reduces of the mesh's parts alone: their rate, and each message size."""
    timer = _Timer(mesh, row_bytes, domain, device, data=mesh.data, budget_s=budget_s)
    found = tuple(timer.sums())
    return _best(found), found


@final
class _Timer:
    def __init__(
        self,
        mesh: Mesh,
        row_bytes: int,
        domain: int,
        device: torch.device,
        *,
        data: Exchange,
        budget_s: float,
    ) -> None:
        self.mesh, self.row_bytes, self.domain = mesh, row_bytes, domain
        self.device, self.data = device, data
        self.each_s = budget_s / 4
        """For one way: there are three, and pairs."""
        n, size = mesh.layout.tensor, mesh.data.size
        self.columns = [[(part * n + each) // domain for part in range(size)] for each in range(n)]
        """Of each slice, the domains of its data group's ranks."""

    def same_domain(self, column: list[int], one: int, other: int) -> bool:
        return column[one] == column[other]

    def other_domain(self, column: list[int], one: int, other: int) -> bool:
        return column[one] != column[other]

    def exchanges(self, way: Way, goes: Callable[[list[int], int, int], bool]) -> Iterator[Sample]:
        """All-to-alls of growing messages between the pairs of ranks that `goes` names."""
        counts = [self._peers(column, goes) for column in self.columns]
        most = max(max(map(sum, each)) for each in counts)
        """Peers of the rank that has most; every rank has as many where domains are whole."""
        mine = counts[self.mesh.slice][self.mesh.data.index]
        spent, found = 0.0, list[float]()
        for rows in ROWS if most else ():
            if rows > 1 and rows * most * self.row_bytes > MOST_BYTES:
                return
            sent = [rows * each for each in mine]
            x = torch.zeros((sum(sent), self.row_bytes), dtype=torch.uint8, device=self.device)
            times = self._times(partial(self.data.all_to_all, x, sent, sent))
            found.append(float(np.median(times)))
            yield Sample(way, rows, rows * most * self.row_bytes, found[-1])
            spent += sum(times)
            if self._is_enough(spent, found):
                return

    def pairs(self, rows: int) -> Iterator[Pair]:
        """Each two domains alone, as far as time allows; nothing where there are just two."""
        last = max(map(max, self.columns))
        spent = 0.0
        for first in range(last if last > 1 else 0):
            for second in range(first + 1, last + 1):
                both = {first, second}

                def goes(column: list[int], one: int, other: int, both: set[int] = both) -> bool:
                    return {column[one], column[other]} == both

                counts = [self._peers(column, goes) for column in self.columns]
                most = max(max(map(sum, each)) for each in counts)
                if not most or spent > self.each_s:
                    continue
                sent = [rows * n for n in counts[self.mesh.slice][self.mesh.data.index]]
                x = torch.zeros((sum(sent), self.row_bytes), dtype=torch.uint8, device=self.device)
                seconds = float(
                    np.median(self._times(partial(self.data.all_to_all, x, sent, sent)))
                )
                spent += seconds
                yield Pair(first, second, rows * most * self.row_bytes / seconds)

    def sums(self) -> Iterator[Sample]:
        """All-reduces of a part's rows, where a part has slices and lies in one domain."""
        group = self.mesh.tensor
        if group.size == 1 or group.size > self.domain:
            return
        spent, found = 0.0, list[float]()
        for rows in ROWS:
            x = torch.zeros((rows, self.row_bytes // 2), dtype=torch.bfloat16, device=self.device)
            times = self._times(partial(group.all_reduce, x))
            found.append(float(np.median(times)))
            sent = all_reduce_bytes(group.size, rows, self.row_bytes // 2)
            yield Sample("sums", rows, int(sent), found[-1])
            spent += sum(times)
            if self._is_enough(spent, found):
                return

    def _peers(
        self, column: list[int], goes: Callable[[list[int], int, int], bool]
    ) -> list[list[int]]:
        """For each rank of a data group, 1 for each rank that it sends to."""
        places = range(len(column))
        return [[int(a != b and goes(column, a, b)) for b in places] for a in places]

    def _times(self, run: Callable[[], object]) -> list[float]:
        """After one that nobody times: links are made when they are first used. Fewer repeats
        where one takes long."""
        run()
        first = self._time(run)
        again = REPEATS - 1 if first * REPEATS < self.each_s else 0
        return [first, *(self._time(run) for _ in range(again))]

    def _is_enough(self, spent: float, found: Sequence[float]) -> bool:
        """Whether the next size may take more than the time that is left, if it is as much slower
        than the last as that was than the one before."""
        ratio = max(found[-1] / found[-2], 1.0) if len(found) > 1 else 1.0
        return spent + 2 * ratio * found[-1] > self.each_s

    def _time(self, run: Callable[[], object]) -> float:
        """Seconds of the slowest rank."""
        self._settle()
        self.mesh.world_host.barrier()
        start = time.perf_counter_ns()
        run()
        self._settle()
        own = np.array([time.perf_counter_ns() - start], dtype=np.int64)
        return float(self.mesh.world_host.all_gather_ints(own).max()) / 1e9

    def _settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _best(samples: Sequence[Sample]) -> float | None:
    return max((each.rate for each in samples), default=None)


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} over NCCL"
    return "CPUs over gloo"
