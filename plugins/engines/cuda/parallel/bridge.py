"""Serves a worker over a line: jobs and control in, deltas, figures and KV events out.

A leader's main thread stays here until the front says that it is over. Knows no network of a model
and no group.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, final

from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Worker
from tokenwire.core.tokens import EngineCard, TokenDelta, TokenJob
from tokenwire.plugins.engines.cuda.parallel.frames import (
    Controls,
    Deltas,
    Events,
    Figures,
    Hello,
    Jobs,
    Listen,
    Stop,
    Wake,
)
from tokenwire.plugins.engines.cuda.parallel.line import Line

__all__ = ("GRACE_S", "WorkerLost", "serve")

BEAT_S: Final = 0.5
"""How often all figures are sent, where they have changed."""
GRACE_S: Final = 20.0
"""How long a worker that was stopped may take to end its jobs."""


class WorkerLost(RuntimeError):
    """The worker cannot work any more, for the reason that its status gives."""


def serve(
    line: Line,
    worker: Worker,
    card: EngineCard,
    slots: int,
    *,
    part: int = 0,
    on_wave: Callable[[int], None] | None = None,
) -> None:
    """Starts the worker, and says Hello; returns when the front said Stop, or is gone, and every
    job has its finish. Raises WorkerLost.

    `slots`: sequences that run together. `part`: this leader's, in its group. `on_wave` is called
    with the number of each `Jobs`, after the worker has them, and of each `Wake`."""
    _Bridge(line, worker, on_wave).run(card, slots, part)


@final
class _Bridge:
    def __init__(self, line: Line, worker: Worker, on_wave: Callable[[int], None] | None) -> None:
        self._line = line
        self._worker = worker
        self._on_wave = on_wave
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], int] = {}
        """Choices without a finish, by (job, attempt)."""
        self._idle = threading.Event()
        self._over = threading.Event()
        self._is_heard = False
        self._lost = ""

    def run(self, card: EngineCard, slots: int, part: int) -> None:
        self._worker.start(self._send)
        status = self._worker.status()
        figures = Figures.of(status, is_whole=True)
        self._line.send(Hello(part, card, slots, dict(status.about), figures))
        beats = threading.Thread(target=self._beats, name="tokenwire-figures", daemon=True)
        beats.start()
        try:
            self._listen()
        finally:
            self._over.set()
            self._worker.stop()
        self._wait()
        beats.join()
        if self._lost:
            raise WorkerLost(self._lost)

    def _listen(self) -> None:
        for frame in self._line.frames():
            match frame:
                case Jobs():
                    self._take(frame.jobs)
                    self._wake(frame.wave)
                case Wake():
                    self._wake(frame.wave)
                case Controls():
                    self._worker.control(frame.frames)
                case Listen():
                    self._tell_events()
                case Stop():
                    return

    def _take(self, jobs: Sequence[TokenJob]) -> None:
        taken: list[TokenJob] = []
        for job in jobs:
            finish = self._worker.refusal(job)
            if finish is None:
                taken.append(job)
            else:
                self._line.send(Deltas(tuple(refusals(job, finish))))
        with self._lock:
            for job in taken:
                self._open[job.job, job.attempt] = max(job.n, 1)
        self._worker.submit(taken)

    def _wake(self, wave: int) -> None:
        # Why after the jobs: who has heard of a wave and has no work calls it over.
        if self._on_wave is not None:
            self._on_wave(wave)

    def _send(self, batch: tuple[TokenDelta, ...]) -> None:
        """From the worker's thread. Why the status first: whoever sees a choice begin or end must
        see what it holds, or has given back."""
        if any(delta.counts is not None for delta in batch):
            self._line.send(Figures.of(self._worker.status(), is_whole=False))
        self._line.send(Deltas(batch))
        ended = [delta for delta in batch if delta.finish is not None]
        with self._lock:
            for delta in ended:
                key = delta.job, delta.attempt
                left = self._open.get(key, 1) - 1
                if left:
                    self._open[key] = left
                else:
                    self._open.pop(key, None)
            if not self._open:
                self._idle.set()

    def _wait(self) -> None:
        """Until no job is open."""
        until = time.monotonic() + GRACE_S
        while True:
            self._idle.clear()
            with self._lock:
                if not self._open:
                    return
            if not self._idle.wait(max(until - time.monotonic(), 0)):
                return

    # --- what it says unasked ----------------------------------------------------------------

    def _beats(self) -> None:
        """In a thread."""
        last = None
        while not self._over.wait(BEAT_S):
            status = self._worker.status()
            figures = Figures.of(status, is_whole=True)
            if figures != last:
                self._line.send(figures)
                last = figures
            if not status.ready and not self._over.is_set():
                self._lost = status.reason
                self._line.end()
                return

    def _tell_events(self) -> None:
        if not self._is_heard:
            self._is_heard = True
            threading.Thread(
                target=lambda: asyncio.run(self._events()), name="tokenwire-events", daemon=True
            ).start()

    async def _events(self) -> None:
        # Why suppressed: a worker without a block cache has none to tell.
        with suppress(NotImplementedError):
            async for event in self._worker.events():
                self._line.send(Events((event,)))
