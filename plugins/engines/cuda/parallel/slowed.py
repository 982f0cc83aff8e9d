"""For tests: an exchange whose rows between domains take as long as over a slow network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import final

from torch import Tensor

from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh

__all__ = ("SlowedExchange",)


@final
class SlowedExchange:
    """The mesh's data group; a rank sleeps for each byte that it sends to another domain."""

    def __init__(self, mesh: Mesh, domain: int, bytes_s: float) -> None:
        self._data, self._bytes_s = mesh.data, bytes_s
        n = mesh.layout.tensor
        places = [(part * n + mesh.slice) // domain for part in range(mesh.data.size)]
        self._leaves = [place != places[mesh.data.index] for place in places]

    def all_to_all(
        self, x: Tensor, sent: Sequence[int] | None = None, received: Sequence[int] | None = None
    ) -> Tensor:
        rows = sent if sent is not None else [len(x) // len(self._leaves)] * len(self._leaves)
        leaving = sum(count for count, leaves in zip(rows, self._leaves, strict=True) if leaves)
        each = x.element_size() * x[:1].numel()
        time.sleep(leaving * each / self._bytes_s)
        return self._data.all_to_all(x, sent, received)
