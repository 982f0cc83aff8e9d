"""The reference engine's face on the event loop: checks jobs, passes them to a thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import final

from tokenwire.core.job_check import refusal, refused
from tokenwire.core.job_log import describe
from tokenwire.core.outlet import refusals
from tokenwire.core.ports.engine import Engine
from tokenwire.core.tokens import (
    Control,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    TokenDelta,
    TokenJob,
)
from tokenwire.core.waits import within
from tokenwire.plugins.engines.reference.model import Model
from tokenwire.plugins.engines.reference.settings import ReferenceSettings
from tokenwire.plugins.engines.reference.worker import Worker

__all__ = ("ReferenceEngine",)

LOG = logging.getLogger("tokenwire.engine.reference")
GRACE_S = 30.0
"""How long a drained engine waits for a forward pass that is under way."""


@final
class ReferenceEngine(Engine):
    def __init__(self, model: Model, card: EngineCard, settings: ReferenceSettings) -> None:
        self._card = card
        self._settings = settings
        self._worker = Worker(model, card, settings, self._from_thread)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: list[TokenDelta] = []
        self._open: dict[tuple[str, int], int] = {}
        """Choices without a finish, by (job, attempt)."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_draining = False

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        taken: list[TokenJob] = []
        for job in jobs:
            if LOG.isEnabledFor(logging.DEBUG):
                LOG.debug("received %s", describe(job))
            finish = self._refusal(job)
            if finish is None:
                self._open[job.job, job.attempt] = job.n
                taken.append(job)
            else:
                self._arrived.extend(refusals(job, finish))
        self._worker.submit(taken)
        self._wake.set()

    def control(self, frames: Sequence[Control]) -> None:
        self._worker.control(frames)

    async def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        if self._loop is not None:
            raise RuntimeError("batches() has one reader, and it is reading already")
        self._loop = asyncio.get_running_loop()
        self._worker.start()
        try:
            while True:
                self._wake.clear()
                if self._arrived:
                    batch, self._arrived = tuple(self._arrived), []
                    yield batch
                    continue
                if not self._open:
                    self._idle.set()
                    if self._is_draining:
                        return
                await self._wake.wait()
        finally:
            self._shut()

    def status(self) -> EngineStatus:
        reason = "it is draining" if self._is_draining else ""
        if self._ended.is_set():
            reason = "it was shut down"
        running = self._worker.running
        return EngineStatus(
            card=self._card,
            ready=not reason,
            reason=reason,
            running=running,
            waiting=max(sum(self._open.values()) - running, 0),
            draining=self._is_draining,
        )

    async def drain(self, timeout_s: float) -> None:
        if not self._is_draining:
            self._is_draining = True
            is_read = self._loop is not None and not self._ended.is_set()
            if is_read:
                self._idle.clear()
                self._wake.set()
                await within(self._idle, timeout_s)
                self._worker.stop()
                await within(self._ended, GRACE_S)
            self._shut()
        await self._ended.wait()

    def _refusal(self, job: TokenJob) -> Finish | None:
        if self._is_draining:
            return refused("the engine is draining", retryable=True)
        finish = refusal(job, self._card)
        if finish is not None:
            return finish
        if (job.job, job.attempt) in self._open:
            return refused("a job of this name is running")
        held = sum(self._open.values())
        if held + job.n > self._settings.max_running + self._settings.max_waiting:
            message = f"{held} choices are running or waiting already"
            return refused(message, FinishCause.OVERLOADED, retryable=True)
        return None

    def _from_thread(self, batch: tuple[TokenDelta, ...]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._arrive, batch)
        except RuntimeError:
            # Why: the loop is closed, so nobody is left to read.
            self._worker.stop()

    def _arrive(self, batch: tuple[TokenDelta, ...]) -> None:
        for delta in batch:
            key = delta.job, delta.attempt
            if delta.finish is not None and key in self._open:
                self._open[key] -= 1
                if not self._open[key]:
                    del self._open[key]
        self._arrived.extend(batch)
        self._wake.set()

    def _shut(self) -> None:
        self._is_draining = True
        self._worker.stop()
        self._idle.set()
        self._ended.set()
