"""The embedding engine's loop in its own thread: a pass for as many waiting texts as go together.

A pass is not broken off; who has left or is late by its end gets no vector. Knows no network.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

from tokenwire.core.figures import Histogram
from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Inbox, Send, Worker, nowhere
from tokenwire.core.tokens import (
    Abort,
    Control,
    Counts,
    EngineCard,
    EngineStatus,
    Figure,
    Finish,
    FinishCause,
    FinishKind,
    TokenDelta,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.blame import NETWORK, op_of
from tokenwire.plugins.engines.cuda.embedding_queue import EmbeddingQueue, Pending

__all__ = ("Embed", "EmbeddingWorker", "Vector")

LOG = logging.getLogger("tokenwire.engine.cuda")

Vector: TypeAlias = tuple[float, ...]
Embed: TypeAlias = Callable[[Sequence[tuple[Sequence[int], int]]], list[Vector]]
"""Texts, each with its adapter's slot (0: none), to their vectors."""

STOP = Finish(FinishKind.STOP, FinishCause.EOS)
LATE = Finish(FinishKind.ABORT, FinishCause.DEADLINE)
DRAINED = Finish(FinishKind.ABORT, FinishCause.DRAIN)


@final
class EmbeddingWorker(Worker):
    def __init__(
        self,
        card: EngineCard,
        queue: EmbeddingQueue,
        embed: Embed,
        *,
        is_alive: Callable[[], bool],
        adapters: Sequence[str] = (),
        about: Mapping[str, str | int | float] | None = None,
    ) -> None:
        """`adapters`: names, in the order of their slots, which begin at 1. `is_alive`: whether
        the device still works at all."""
        self._card = card
        self._queue = queue
        self._embed = embed
        self._is_alive = is_alive
        self._slots = {name: slot for slot, name in enumerate(adapters, start=1)}
        self._about = about or {}
        self._send: Send = nowhere
        self._inbox: Inbox[Pending | Control] = Inbox()
        self._out: list[TokenDelta] = []
        self._broken = ""
        self._running = 0
        self._passes = 0
        self._computed = 0
        self._errors: Counter[str] = Counter()
        self._waited = Histogram("queue_seconds")
        self._took = Histogram("step_seconds")
        self._thread = threading.Thread(target=self._run, name="tokenwire-embed", daemon=True)

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        now = time.monotonic()
        self._inbox.put(self._pending(job, now) for job in jobs)

    def control(self, frames: Sequence[Control]) -> None:
        self._inbox.put(frames)

    def stop(self) -> None:
        self._inbox.stop()

    def refusal(self, job: TokenJob) -> Finish | None:
        return self._lost() if self._broken else None

    def status(self) -> EngineStatus:
        return EngineStatus(
            card=self._card,
            ready=not self._broken,
            reason=self._broken,
            running=self._running,
            figures=(
                Figure("steps", (float(self._passes),)),
                Figure("tokens", (float(self._computed),), "prompt_computed"),
                *(Figure("op_errors", (float(n),), op) for op, n in dict(self._errors).items()),
                self._waited.figure(),
                self._took.figure(),
            ),
            about=self._about,
        )

    def _pending(self, job: TokenJob, now: float) -> Pending:
        due = None if job.deadline_ms is None else now + job.deadline_ms / 1000
        slot = 0 if job.adapter is None else self._slots[job.adapter.name]
        return Pending(job, arrived=now, due=due, adapter=slot)

    # Everything below runs in the thread

    def _run(self) -> None:
        try:
            while not self._inbox.is_stopping:
                has_moved = self._turn()
                self._flush()
                if not has_moved:
                    self._inbox.sleep()
            self._read()
            self._end_all(DRAINED)
        except BaseException as error:
            # Why all: neither a bug here nor a panic in a library's compiled code may leave
            # clients waiting for ever, or /ready lying.
            LOG.exception("the engine's loop failed")
            self._broken = self._broken or f"its loop failed: {type(error).__name__}"
            self._end_all(self._lost())
            self._refuse_arrivals()

    def _turn(self) -> bool:
        self._read()
        chosen, late = self._queue.take(time.monotonic())
        for pending in late:
            self._finish(pending, LATE)
        if not chosen:
            return bool(late)
        started = time.monotonic()
        for pending in chosen:
            self._waited.add(started - pending.arrived)
        self._running = len(chosen)
        found = self._pass(chosen)
        self._took.add(time.monotonic() - started)
        self._running = 0
        self._read()
        for pending, vector in zip(chosen, found, strict=True):
            if not pending.is_over:
                self._bring(pending, vector)
        return True

    def _pass(self, chosen: Sequence[Pending]) -> list[Vector | str]:
        """A vector for each, or why there is none. What fails is run again one by one, so that
        only those end that fail alone."""
        try:
            return list(self._embedded(chosen))
        except Exception as error:
            LOG.warning("a pass of %d texts failed: %s", len(chosen), error)
            self._errors[op_of(error)] += 1
            name = type(error).__name__
        found: list[Vector | str] = []
        for pending in chosen:
            try:
                found += self._embedded((pending,)) if len(chosen) > 1 else [f"{name} in a pass"]
            except Exception as error:
                LOG.exception("a text failed alone")
                self._errors[op_of(error)] += 1
                found.append(f"{type(error).__name__} in a pass")
        has_failed = any(isinstance(each, str) for each in found)
        if has_failed and not self._is_alive():
            self._broken = "the device is lost"
            raise RuntimeError(self._broken)
        return found

    def _embedded(self, chosen: Sequence[Pending]) -> list[Vector]:
        texts = [(pending.job.prompt, pending.adapter) for pending in chosen]
        vectors = self._embed(texts)
        self._passes += 1
        self._computed += sum(len(ids) for ids, _ in texts)
        return vectors

    def _bring(self, pending: Pending, vector: Vector | str) -> None:
        if not isinstance(vector, str) and not all(map(math.isfinite, vector)):
            vector = "the network gave NaN or infinity"
            self._errors[NETWORK] += 1
        if isinstance(vector, str):
            LOG.error("job %s: %s", pending.job.job, vector)
            cause = FinishCause.INTERNAL
            self._finish(pending, Finish(FinishKind.ERROR, cause, retryable=True, message=vector))
        else:
            self._finish(pending, STOP, (vector,))

    def _finish(self, pending: Pending, finish: Finish, vectors: tuple[Vector, ...] = ()) -> None:
        job, length = pending.job, len(pending.job.prompt)
        counts = Counts(prompt=length, computed=length if vectors else 0)
        self._out.append(
            TokenDelta(job.job, attempt=job.attempt, vectors=vectors, counts=counts, finish=finish)
        )
        self._queue.close(pending)

    def _read(self) -> None:
        for message in self._inbox.take():
            match message:
                case Pending() as pending:
                    self._queue.add(pending)
                case Abort(job, choice, reason) if choice in (None, 0):
                    finish = Finish(FinishKind.ABORT, FinishCause(reason.value))
                    for pending in self._queue.of(job):
                        self._finish(pending, finish)
                case _:
                    # A vector takes no credit, and there is no KV to hold.
                    pass

    def _end_all(self, finish: Finish) -> None:
        for pending in self._queue.everything():
            self._finish(pending, finish)
        self._flush()

    def _refuse_arrivals(self) -> None:
        """After the loop failed: nobody may wait for an answer."""
        while not self._inbox.is_stopping:
            for message in self._inbox.take():
                if isinstance(message, Pending):
                    self._out += refusals(message.job, self._lost())
            self._flush()
            self._inbox.sleep()

    def _lost(self) -> Finish:
        return refused(self._broken, FinishCause.LOST, retryable=True)

    def _flush(self) -> None:
        if self._out:
            batch, self._out = tuple(self._out), []
            self._send(batch)
