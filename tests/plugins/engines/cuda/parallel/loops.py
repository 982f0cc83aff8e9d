"""The loops of a group's ranks, without a front: jobs by part and stage in, answers out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.plugins.engines.cuda.driving import Answer
from tokenwire.core.host import lone_services
from tokenwire.core.settings import Place, convert
from tokenwire.core.tokens import Control, TokenDelta, TokenJob
from tokenwire.plugins.engines.cuda.build import assemble, load_here
from tokenwire.plugins.engines.cuda.laid import lay_out
from tokenwire.plugins.engines.cuda.parallel.leading import follower_of
from tokenwire.plugins.engines.cuda.parallel.mesh import Mesh, beside
from tokenwire.plugins.engines.cuda.passes import Passes
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.cuda.worker import CudaWorker

__all__ = ("BASE", "Seen", "serve_part", "serve_worker")

Stage = Sequence[Sequence[TokenJob]]
"""Jobs of each part."""
BASE = {"device": "cpu", "max_batch_size": 8, "kv_gib": 0.002, "block_size": 4, "threads": 1}

Seen = dict[str, Any]
Controls = dict[str, tuple[int, Control]]


def serve_part(
    mesh: Mesh,
    fields: dict[str, Any],
    stages: Sequence[Stage],
    controls: Controls | None = None,
    change: Callable[[Mesh, Passes], None] | None = None,
) -> Seen:
    """Every stage is a wave: its jobs reach their parts when this part's of the stage before are
    over. `controls`: job -> after how many of its ids what is said of it. `change` is made to the
    passes before they begin."""
    settings = convert(CudaSettings, BASE | fields, Place("test", "engine"))
    services = lone_services()
    loaded, found = load_here(settings, services, mesh=mesh)
    signal, _ = beside(mesh)
    count = Counted()
    if not mesh.is_leader:
        laid = lay_out(settings, loaded, found, mesh, count)
        if change is not None:
            change(mesh, laid.passes)
        follower_of(mesh, laid).run()
        return {"passes": count.passes}
    built = assemble(settings, services, loaded, found, mesh=mesh, between=count)
    worker = built.worker
    assert isinstance(worker, CudaWorker)
    if change is not None:
        change(mesh, worker._runner.passes)
    answers = serve_worker(
        worker, mesh, stages, controls or {}, lambda: signal.all_gather(torch.zeros(1))
    )
    return {
        "answers": answers,
        "passes": count.passes,
        "status": worker._scheduler.status(),
        "card": built.card,
    }


class Counted:
    def __init__(self) -> None:
        self.passes = 0

    def __call__(self) -> None:
        self.passes += 1


def serve_worker(
    worker: CudaWorker,
    mesh: Mesh,
    stages: Sequence[Stage],
    controls: Controls,
    meet: Callable[[], Any],
) -> dict[tuple[str, int], Answer]:
    inbox: queue.SimpleQueue[tuple[TokenDelta, ...]] = queue.SimpleQueue()
    found: dict[tuple[str, int], Answer] = {}
    worker.start(inbox.put)
    for wave, stage in enumerate(stages, start=1):
        jobs = stage[mesh.part] if mesh.part < len(stage) else ()
        worker.submit(jobs)
        worker.wake(wave)
        left = sum(job.n for job in jobs)
        while left:
            for delta in _next(worker, inbox):
                answer = found.setdefault((delta.job, delta.choice), Answer())
                answer.deltas.append(delta)
                left -= delta.finish is not None
                after, control = controls.get(delta.job, (0, None))
                if control is not None and delta.finish is None and len(answer.ids) >= after:
                    worker.control([control])
    # Why a meeting: a part that stops ends the jobs of all.
    meeting = threading.Thread(target=meet, daemon=True)
    meeting.start()
    while meeting.is_alive():
        meeting.join(0.1)
        _check(worker)
    worker.stop()
    worker.join(30)
    assert not worker._thread.is_alive()
    assert not worker._broken
    status = worker._scheduler.status()
    assert status.blocks_free + status.blocks_evictable == status.blocks_total
    assert worker._runner.rows.used == worker._steps.flying == 0
    return found


def _next(worker: CudaWorker, inbox: queue.SimpleQueue[Any]) -> tuple[TokenDelta, ...]:
    while True:
        try:
            return inbox.get(timeout=0.2)
        except queue.Empty:
            _check(worker)


def _check(worker: CudaWorker) -> None:
    if worker._broken:
        raise RuntimeError(worker._broken)
