"""A stop that comes at the worst moment is not missed: between a thread's sleep and its look."""

from __future__ import annotations

import threading

import pytest

from tests.plugins.engines.cuda.driving import engine
from tests.plugins.engines.reference.tiny import tiny_llama
from tokenwire.core.host import lone_services

pytestmark = pytest.mark.torch


class Untimely(threading.Event):
    """Stops the worker right before it is cleared for the first time."""

    def __init__(self, worker) -> None:
        super().__init__()
        self.worker = worker

    def clear(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.stop()
        super().clear()


def reference():
    from tokenwire.plugins.engines.reference.build import build
    from tokenwire.plugins.engines.reference.settings import ReferenceSettings

    return build(ReferenceSettings(path=str(tiny_llama()), device="cpu"), lone_services())


@pytest.mark.parametrize("make", [engine, reference])
def test_a_stop_is_not_missed(make) -> None:
    worker = make()._worker
    worker._inbox._something = Untimely(worker)
    worker.start(lambda batch: None)
    worker.control([])
    worker._thread.join(30)
    assert not worker._thread.is_alive()
