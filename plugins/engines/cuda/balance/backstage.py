"""Jobs beside the steps, one after another in a thread; every rank gives the same, in one order.

Ranks tell each other how many they have done, and what all have done takes effect on all of them
between the same two steps. Knows no expert.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

import numpy as np

from tokenwire.plugins.engines.cuda.parallel.group import HostGroup

__all__ = ("Backstage",)


@final
class Backstage:
    def __init__(self, everyone: HostGroup) -> None:
        """`everyone`: all ranks; the caller's thread of each uses it in one order."""
        self._everyone = everyone
        self._thread = ThreadPoolExecutor(1, "tokenwire-balance")
        self._waiting: deque[tuple[Future[Any], Callable[[Any], None]]] = deque()
        self._applied = 0

    def give(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """`work` in the thread; `then`, with what it gave, when every rank has done it. `then` may
        give more."""
        self._waiting.append((self._thread.submit(work), then))

    def meet(self) -> None:
        """Between two steps: a collective of all ranks. Raises what a job raised here."""
        done = self._applied
        for future, _ in self._waiting:
            if not future.done():
                break
            done += 1
        least = int(self._everyone.least(np.array([done], np.int64))[0])
        while self._applied < least:
            future, then = self._waiting.popleft()
            self._applied += 1
            then(future.result())

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
