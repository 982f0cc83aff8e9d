"""One call's sink: an engine's deltas to a protocol's bytes, kept until the connection takes them.

Works in the engine's step: pushing never waits. Where the connection can take bytes at once they go
out in that step; else its coroutine is woken, once a step. What a slow client has not taken is
bounded by credit. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import final

from tokenwire.core.errors import CodecStateError
from tokenwire.core.events import Event, Failed
from tokenwire.core.flusher import Flusher
from tokenwire.core.generation import Generation
from tokenwire.core.ports.codec import Reply
from tokenwire.core.ports.observer import ITL_BOUNDS
from tokenwire.core.token_ids import NO_IDS, TokenIds
from tokenwire.core.tokens import Finish, TokenDelta

__all__ = ("CREDIT_STEP", "CREDIT_WINDOW", "AnswerStream")

log = logging.getLogger("tokenwire.stream")

CREDIT_WINDOW = 1024
"""Tokens that may wait for a slow client, beside what the engine itself holds."""

CREDIT_STEP = CREDIT_WINDOW // 4
"""Credit is given back in portions of so many tokens: a frame a token would cost more than it."""


@final
class AnswerStream:
    """`take` bytes when `wait` returns, until `is_over` and nothing is left.

    `failed` is set instead of bytes when the answer failed before anything of it was made: the
    flow then answers with a proper status. Times are perf_counter's: an event loop's clock may
    tick in milliseconds.
    """

    def __init__(
        self,
        generation: Generation,
        reply: Reply,
        *,
        stream: bool,
        abort: Callable[[int], None],
        credit: Callable[[int], None] | None = None,
        record: list[TokenDelta] | None = None,
        flusher: Flusher | None = None,
        break_off: Callable[[], None] | None = None,
        gathers: bool = False,
    ) -> None:
        """`abort` tells the engine that a choice is no longer wanted; `credit` that so many tokens
        were taken (None: it does not ask); `record` gets each delta. `flusher` makes writes wait
        for each other; `break_off` is called when a delta fails outside the engine's step;
        `gathers`: while a write waits, ids may wait too and be read together (nobody stops the
        answer by its text, and one choice is all)."""
        self.generation = generation
        self.failed: Failed | None = None
        self.first_token_at: float | None = None
        self.itl_counts = [0] * (len(ITL_BOUNDS) + 1)
        self.itl_sum = 0.0
        self.gone = False
        """The client has left: nothing more is made for it."""
        self.direct: Callable[[bytes], bool] | None = None
        """Takes bytes at once, or says False; set when the connection can."""
        self.holds_end = False
        """The last bytes wait for the connection's side, which has something to do before."""
        self._reply = reply
        self._push = reply.push
        self._counts = reply.counts
        self._stream = stream
        self._abort = abort
        self._credit = credit
        self._record = record
        self._flusher = flusher
        self._break_off = break_off
        self._gathers = gathers
        self._first: TokenDelta | None = None  # Of the deltas whose ids wait.
        self._held = NO_IDS
        self._waits = False  # Until the flusher calls.
        self._chunks: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._interval = self._active_at = 0.0
        is_patient = gathers and flusher is not None and flusher.interval_s > 0
        # Why never: ids of a whole answer are read together, a few milliseconds at a time.
        self._written_at = inf if is_patient and not stream else 0.0
        self._last_at = 0.0
        self._tokens = 0  # Since credit was last given back.
        self._fresh = False  # Whether this step brought tokens.
        self._began = False

    @property
    def is_over(self) -> bool:
        return self.generation.is_over

    # --- the engine's side -----------------------------------------------------------------------

    def push(self, delta: TokenDelta) -> None:
        if self._record is not None:
            self._record.append(delta)
        ids = delta.ids
        if ids:
            self._tokens += len(ids)
            self._fresh = True
        if self._waits and self._gathers:
            first = self._first
            if delta.finish is None and delta.counts is None and not delta.logprobs:
                if first is None:
                    self._first, self._held = delta, TokenIds(ids)
                    return
                if delta.at == first.at + len(self._held) and delta.choice == first.choice:
                    self._held.extend(ids)
                    return
        if self._first is not None:
            self._read_held()
        self._read(delta)

    def _read_held(self) -> None:
        first, ids = self._first, self._held
        assert first is not None
        self._first, self._held = None, NO_IDS
        self._read(TokenDelta(first.job, first.at, first.attempt, first.choice, ids))

    def _read(self, delta: TokenDelta) -> None:
        generation = self.generation
        self._emit(generation.push(delta))
        if generation.unwanted:
            for choice in generation.unwanted:
                self._abort(choice)
            generation.unwanted.clear()

    def end(self, finish: Finish) -> None:
        """The whole call failed: the engine is gone, or one of its deltas could not be sent."""
        if self._first is not None:
            with suppress(Exception):  # Why: what came before the end is the client's.
                self._read_held()
        failed = self.generation.end(finish)
        if not self._stream or not self._began:
            self._chunks.clear()
            self.failed = failed
        elif not self.gone:
            try:
                self._chunks.append(self._push(failed))
            except CodecStateError:
                # Why nothing more: the reply broke on its very last event, and takes none now.
                log.warning("a stream broke at its end, and has no terminal event")
        self.wake()

    def wake(self) -> None:
        if self._fresh:
            self._fresh = False
            now = perf_counter()
            if self.first_token_at is None:
                self.first_token_at = now
            else:
                gap = now - self._last_at
                self.itl_counts[bisect_left(ITL_BOUNDS, gap)] += 1
                self.itl_sum += gap
            self._last_at = now
            if self._first is not None:
                return  # Why: what came waits, and the flusher will call.
        flusher = self._flusher
        if flusher is not None and not (self.generation.is_over or self.gone or self.failed):
            if self._waits:
                return
            if self._last_at - self._written_at < flusher.interval_s:
                self._waits = True
                flusher.later(self)
                return
        self._write()

    def flush(self) -> None:
        """The flusher's call."""
        self._waits = False
        if self._first is not None:
            try:
                self._read_held()
            except Exception:
                log.exception("ids that waited could not be read")
                if self._break_off is not None:
                    self._break_off()
                return
        self._write()

    def _write(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            return  # Why: the connection is sending, and will look again.
        if self._stream:
            chunks, direct = self._chunks, self.direct
            if self.holds_end and self.is_over:
                direct = None
            if chunks and direct is not None and direct(self._joined()):
                chunks.clear()
                self._active_at = self._written_at = self._last_at
                if self._tokens >= CREDIT_STEP:
                    self.taken()
            if chunks or self.is_over or self.gone or self.failed:
                waiter.set_result(True)
        elif self.is_over or self.gone or self.failed:
            # Why: a unary answer has bytes at its end alone.
            waiter.set_result(True)

    def leave(self) -> None:
        """The client has gone, or is told nothing more. What waits counts as made."""
        self.gone = True
        if self._first is not None:
            with suppress(Exception):
                self._read_held()
        self._chunks.clear()
        self.wake()

    def _emit(self, events: list[Event]) -> None:
        if self.gone:
            return
        push, chunks = self._push, self._chunks
        if self._counts and events:
            self._reply.count(self.generation.count())
        for event in events:
            if type(event) is Failed and (not self._stream or not self._began):
                self.failed = event
                return
            data = push(event)
            if data:
                chunks.append(data)
            self._began = True

    # --- the connection's side -------------------------------------------------------------------

    def arm(self, interval_s: float) -> None:
        """From now on `wait` returns False after `interval_s` in which nothing was taken."""
        self._interval = interval_s
        self._active_at = perf_counter()
        self._timer = self._loop.call_later(interval_s, self._tick)

    def disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        # Why: one timer a stream, which looks how long it was idle, not one for each wait.
        idle = perf_counter() - self._active_at
        left = self._interval - idle
        if left <= 0.001:
            left = self._interval
            self._active_at += idle
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(False)
        self._timer = self._loop.call_later(left, self._tick)

    async def wait(self) -> bool:
        """True when there are bytes, or it is over or given up; False when it was idle so long."""
        if self._chunks or self.gone or self.is_over or self.failed:
            return True
        self._waiter = self._loop.create_future()
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def take(self) -> bytes:
        """All bytes that are ready, in order; b"" when there are none."""
        if not self._chunks:
            return b""
        data = self._joined()
        self._chunks = []
        return data

    @property
    def has_bytes(self) -> bool:
        return bool(self._chunks)

    def taken(self) -> None:
        """The bytes of all tokens so far were sent: give credit back, when it is worth a frame."""
        self._active_at = self._written_at = self._last_at
        if self._credit is not None and self._tokens >= CREDIT_STEP:
            tokens, self._tokens = self._tokens, 0
            self._credit(tokens)

    def _joined(self) -> bytes:
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
