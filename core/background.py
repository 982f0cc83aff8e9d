"""Answers that are made whether or not anybody listens: their tasks, events and ends.

A run is a call whose exchange is no connection but a log. While it goes on, the store gets what
there is every half second, so that any worker can show it, and a wish to cancel is looked for
there. Knows no protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, final

from tokenwire.core.errors import CallError, ErrorKind, RequestError
from tokenwire.core.event_log import EventLog
from tokenwire.core.events import Failed
from tokenwire.core.exchange import ClientGone, Exchange
from tokenwire.core.keeper import Keeper
from tokenwire.core.shelf import Shelf
from tokenwire.core.stored import AnswerStatus, StoredAnswer
from tokenwire.core.wire import HttpReply

__all__ = ("Background", "BackgroundRun")

log = logging.getLogger("tokenwire.background")

BEAT_S: Final = 0.5
"""How often the store is told of a run, and asked whether it is still wanted."""
GOING_DOWN: Final = "the server was shut down before the answer was whole"
LOST: Final = Failed(ErrorKind.INTERNAL, "the answer broke off")


@final
class LogExchange(Exchange):
    """Writes into a log; closed by whoever cancels."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._closed = asyncio.Event()

    async def reply(self, reply: HttpReply) -> None:
        raise AssertionError("an answer in the background is a stream")

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        pass

    async def send(self, data: bytes) -> None:
        self._log.add(data)

    def push(self, data: bytes) -> bool:
        self._log.add(data)
        return True

    async def finish(self) -> None:
        pass

    async def closed(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        self._closed.set()


@final
class BackgroundRun:
    """One answer on its way. `task` ends when it is stored whole."""

    def __init__(self, keeper: Keeper, shelf: Shelf) -> None:
        self.keeper = keeper
        self.log = EventLog()
        self.exchange = LogExchange(self.log)
        self.task: asyncio.Task[None] | None = None
        self._shelf = shelf
        self._pieces = 0
        self._written = 0  # Events that the store has.

    def stored(self) -> StoredAnswer:
        status: AnswerStatus | None = "over" if self.log.is_over else None
        return self.keeper.stored(pieces=self._pieces, status=status)

    async def begin(self) -> StoredAnswer:
        """Put it in the store before anything is made. Raises ServiceError where that fails."""
        self.log.add(self.keeper.reply.begin())
        answer = self.stored()
        await self.keeper.put(answer)
        return answer

    async def go(self, make: Awaitable[object]) -> None:
        """Make it, whatever happens."""
        pulse = asyncio.ensure_future(self._pulse())
        failed: Failed | None = None
        is_cancelled = False
        try:
            await make
        except ClientGone:
            is_cancelled = True
        except CallError as error:
            failed = Failed(error.kind, error.message)
        except asyncio.CancelledError:
            failed = Failed(ErrorKind.UNAVAILABLE, GOING_DOWN)
        except Exception:
            log.exception("response %s failed", self.keeper.reply.id)
            failed = LOST
        pulse.cancel()
        await asyncio.gather(pulse, return_exceptions=True)
        reply = self.keeper.reply
        if reply.stored().status != "over":
            end = reply.cancel() if is_cancelled else reply.push(failed or LOST)
            self.log.add(end)
        await self._end()

    async def _end(self) -> None:
        try:
            await self._write()
            await self.keeper.put(self.keeper.stored(pieces=self._pieces, status="over"))
            await self._hear()
            if self.keeper.is_dropped:
                # Why again: what was written since the wish has brought it back.
                await self._shelf.delete(self.keeper.tenant, self.stored())
        except CallError as error:
            log.warning("response %s is not kept: %s", self.keeper.reply.id, error)
        finally:
            self.log.end()

    async def _pulse(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                # Why first: what is no longer wanted is not written again.
                await self._hear()
                await self._write()
                # Why always running: whoever reads the store waits for the last piece.
                await self.keeper.put(self._running())
            except CallError:
                continue  # The shelf has said why.

    async def _hear(self) -> None:
        """What another worker was asked to do with this answer."""
        wish = await self._shelf.wish(self.keeper.tenant, self.keeper.reply.id)
        if wish is not None:
            self.keeper.is_dropped |= wish == "delete"
            self.exchange.close()

    def _running(self) -> StoredAnswer:
        answer = self.keeper.stored(pieces=self._pieces)
        if answer.status == "over":
            answer = self.keeper.stored(pieces=self._pieces, status="running")
        return answer

    async def _write(self) -> None:
        """The events since the last time, as one more piece."""
        events = self.log.events[self._written :]
        if not events or self.keeper.is_dropped:
            return
        reply = self.keeper.reply
        await self._shelf.put_piece(self.keeper.tenant, reply.id, self._pieces, b"".join(events))
        self._pieces += 1
        self._written += len(events)


@final
class Background:
    """All runs of this process, so many at most."""

    def __init__(self, shelf: Shelf, most: int) -> None:
        self._shelf = shelf
        self._most = most
        self._runs: dict[tuple[str, str], BackgroundRun] = {}

    def find(self, tenant: str, id_: str) -> BackgroundRun | None:
        """None: it is over, of another worker, or of nobody."""
        return self._runs.get((tenant, id_))

    async def start(
        self, keeper: Keeper, make: Callable[[Exchange], Awaitable[object]]
    ) -> tuple[BackgroundRun, StoredAnswer]:
        """Raises RequestError (429) when there are too many, ServiceError without a store."""
        if len(self._runs) >= self._most:
            raise RequestError(
                f"{self._most} answers are being made in the background; try again later",
                kind=ErrorKind.RATE_LIMITED,
                retry_after=5,
            )
        run = BackgroundRun(keeper, self._shelf)
        key = (keeper.tenant, keeper.reply.id)
        self._runs[key] = run
        try:
            answer = await run.begin()
        except BaseException:
            del self._runs[key]
            raise
        run.task = asyncio.ensure_future(run.go(make(run.exchange)))
        run.task.add_done_callback(lambda _: self._runs.pop(key, None))
        return run, answer

    async def close(self, timeout_s: float) -> None:
        """Let runs end, whose engines are stopped; end those that do not."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=timeout_s)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
