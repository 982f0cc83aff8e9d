"""A network that fails where it is told, in place of an engine's own: for tests alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from tokenwire.core.ports.engine import Engine

__all__ = ("Faulty", "broken_network", "settled")


class Faulty:
    """Calls of `forward` are counted from 0. `ids`: a batch with one of them raises. `nan_ids`:
    tokens of these ids get NaN."""

    def __init__(
        self,
        model,
        *,
        calls: frozenset[int] = frozenset(),
        ids: frozenset[int] = frozenset(),
        nan_ids: frozenset[int] = frozenset(),
        error: Callable[[], Exception] = lambda: RuntimeError("the test's fault"),
        after: bool = False,
    ) -> None:
        self._model = model
        self._calls, self._ids, self._nan_ids = calls, ids, nan_ids
        self._error = error
        self._after = after
        self.count = 0
        self.faults = 0

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def forward(self, batch, caches):
        mine, self.count = self.count, self.count + 1
        found = set(batch.ids.tolist())
        fails = mine in self._calls or bool(found & self._ids)
        if fails and not self._after:
            self._fail()
        hidden = self._model.forward(batch, caches)
        if fails:
            self._fail()
        for at, id in enumerate(batch.ids.tolist()):
            if id in self._nan_ids:
                hidden[at] = math.nan
        return hidden

    def _fail(self) -> None:
        self.faults += 1
        raise self._error()


def broken_network(made: Engine, **fields) -> Faulty:
    """Puts it into an engine that has not begun."""
    passes = made._worker._runner.passes
    assert passes.graphs is None
    faulty = passes.model = Faulty(passes.model, **fields)
    return faulty


def settled(made: Engine) -> None:
    """After the engine has ended: nobody holds a block or a row."""
    worker = made._worker
    worker._thread.join(10)
    assert not worker._thread.is_alive()
    status = worker._scheduler.status()
    assert status.blocks_free + status.blocks_evictable == status.blocks_total
    assert status.running == status.waiting == 0
    assert worker._scheduler.is_idle
    assert worker._runner.rows.used == 0
    assert worker._steps.flying == 0
