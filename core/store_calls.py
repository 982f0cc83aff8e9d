"""Calls to a store that never fail a request and never hold it up for long.

What does not answer in time is left to end on its own, beside the request. Why not cancelled:
cancelling a call costs Redis clients their connection, and a breaker behind the store learns only
from calls that run into its own bound.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, final

from tokenwire.core.errors import StoreError

__all__ = ("StoreCalls",)

LOG = logging.getLogger(__name__)

T = TypeVar("T")

BESIDE = 64
"""Calls that may be under way beside requests; beyond it the store is left alone."""

BESIDE_S = 5.0
"""How long one of them may take, whatever the store's own bound."""


@final
class StoreCalls:
    """`wait_s`: how long a request waits for the store."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._tasks: set[asyncio.Task[Any]] = set()
        self._beside: set[asyncio.Task[Any]] = set()
        """Those of `_tasks` that nobody waits for."""

    async def ask(self, call: Callable[[], Awaitable[T]]) -> tuple[bool, T | None]:
        """Whether the store answered in time, and what."""
        task = self._start(call)
        if task is None:
            return False, None
        await asyncio.wait((task,), timeout=self._wait_s)
        if not task.done():
            self._beside.add(task)
            return False, None
        if task.cancelled() or task.exception() is not None:
            return False, None
        return True, task.result()

    def leave(self, call: Callable[[], Awaitable[object]]) -> bool:
        """Make it, and do not wait; False: too many are under way, and it is not made."""
        task = self._start(call)
        if task is not None:
            self._beside.add(task)
        return task is not None

    async def close(self) -> None:
        """Ends what is under way. A second call does nothing."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, call: Callable[[], Awaitable[T]]) -> asyncio.Task[T] | None:
        if len(self._beside) >= BESIDE:
            return None
        task = asyncio.get_running_loop().create_task(_bounded(call))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._beside.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreError | TimeoutError):
            LOG.error("a store broke its contract", exc_info=error)


async def _bounded(call: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(BESIDE_S):
        return await call()
