"""An engine whose work runs in a thread of its own: its face on the event loop. Knows no model.

For engines that compute in this process (torch holds no event loop): commands go to a `Worker`,
deltas come back through one function, and everything about a job's life is seen by one thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar, final

from msgspec.structs import replace

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
    KvEvent,
    TokenDelta,
    TokenJob,
)
from tokenwire.core.waits import within

__all__ = ("Inbox", "Send", "ThreadedEngine", "Worker", "nowhere")

GRACE_S = 30.0
"""How long a drained engine waits for a forward pass that is under way."""

Send: TypeAlias = Callable[[tuple[TokenDelta, ...]], None]
Message = TypeVar("Message")


def nowhere(batch: tuple[TokenDelta, ...]) -> None:
    """A worker's `Send` before its start."""


@final
class Inbox(Generic[Message]):
    """What waits for a worker's thread, which takes all there is, works, and sleeps when there is
    nothing to do. No message and no stop is missed, whenever it comes."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._something = threading.Event()
        self.is_stopping = False

    def put(self, messages: Iterable[Message]) -> None:
        """From any thread."""
        self._messages.extend(messages)
        self.ring()

    def stop(self) -> None:
        """From any thread, for good."""
        self.is_stopping = True
        self.ring()

    def ring(self) -> None:
        """The sleep that is, or the next one, ends at once."""
        self._something.set()

    def take(self) -> Iterator[Message]:
        """The oldest first, and also what comes meanwhile."""
        while self._messages:
            yield self._messages.popleft()

    def sleep(self, timeout_s: float | None = None) -> None:
        """Until something came since the last sleep. To be followed by a look at everything."""
        # Why at most: a longer wait than the platform knows is an error.
        most = None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)
        self._something.wait(most)
        # Why here and nowhere else: what comes before this is seen by that look, and what comes
        # after it ends the next sleep.
        self._something.clear()


class Worker(ABC):
    """What runs in the thread. `start` is called once, from the event loop's thread; `submit`,
    `control`, `stop` and `status` from any."""

    @abstractmethod
    def start(self, send: Send) -> None:
        """Begin; `send` may be called from any thread, once a step."""

    @abstractmethod
    def submit(self, jobs: Sequence[TokenJob]) -> None:
        """Take jobs that the card allows. Never blocks."""

    @abstractmethod
    def control(self, frames: Sequence[Control]) -> None:
        """Abort, credit, release. Never blocks."""

    @abstractmethod
    def stop(self) -> None:
        """Abort (drain) what is left, send it, and end. Does not wait."""

    @abstractmethod
    def status(self) -> EngineStatus:
        """Its own view: `ready` false, and why, where it cannot work any more."""

    def refusal(self, job: TokenJob) -> Finish | None:
        """Why this worker cannot run a job that the card allows; None: it can."""
        return None

    def events(self) -> AsyncIterator[KvEvent]:
        """KV events, a snapshot first. Called from the event loop."""
        raise NotImplementedError


@final
class ThreadedEngine(Engine):
    """`max_open`: choices that run or wait; more are refused as overloaded."""

    def __init__(self, worker: Worker, card: EngineCard, max_open: int, name: str) -> None:
        self._worker = worker
        self._card = card
        self._max_open = max_open
        self._log = logging.getLogger(f"tokenwire.engine.{name}")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: list[TokenDelta] = []
        self._open: dict[tuple[str, int], int] = {}
        """Choices without a finish, by (job, attempt)."""
        self._held = 0
        """The sum of `_open`."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_draining = False

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        taken: list[TokenJob] = []
        for job in jobs:
            if self._log.isEnabledFor(logging.DEBUG):
                self._log.debug("received %s", describe(job))
            finish = self._refusal(job)
            if finish is None:
                self._open[job.job, job.attempt] = job.n
                self._held += job.n
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
        self._worker.start(self._from_thread)
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

    def events(self) -> AsyncIterator[KvEvent]:
        return self._worker.events()

    def status(self) -> EngineStatus:
        status = self._worker.status()
        reason = status.reason
        if self._ended.is_set():
            reason = "it was shut down"
        elif self._is_draining:
            reason = "it is draining"
        return replace(
            status,
            card=self._card,
            ready=status.ready and not reason,
            reason=reason,
            waiting=max(self._held - status.running, 0),
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
        if self._held + job.n > self._max_open:
            message = f"{self._held} choices are running or waiting already"
            return refused(message, FinishCause.OVERLOADED, retryable=True)
        return self._worker.refusal(job)

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
                self._held -= 1
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
