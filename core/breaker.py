"""A time bound and a circuit breaker around calls to what may be lost. Knows not what it is.

After `threshold` failures in a row it is open: calls fail at once, and no caller waits. Every
`rest_s` the next call that comes starts one probe beside it, in a task of its own, so that not
even the probe costs a caller time; the first probe that ends well closes the breaker again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar, final

from tokenwire.core.errors import StoreError

__all__ = ("Breaker",)

T = TypeVar("T")


@final
class Breaker:
    """`name` stands in messages; `losses` are the exceptions that mean "not reachable", beside
    TimeoutError and OSError. Whatever else a call raises passes through and counts for nothing."""

    def __init__(
        self,
        name: str,
        *,
        timeout_s: float,
        probe: Callable[[], Awaitable[object]],
        losses: tuple[type[Exception], ...] = (),
        threshold: int = 3,
        rest_s: float = 1.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._probe = probe
        self._losses: tuple[type[Exception], ...] = (*losses, TimeoutError, OSError)
        self._threshold = threshold
        self._rest_s = rest_s
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0
        self._last = ""
        self._probing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls fail at once."""
        return self._failures >= self._threshold

    async def run(self, call: Callable[[], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        """`call()` within `timeout_s` (default: the breaker's). Raises StoreError for a loss."""
        if self.is_open:
            self._probe_if_due()
            raise StoreError(f"{self._name} is not reachable ({self._last}); trying again beside")
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                result = await call()
        except self._losses as error:
            self._count(error)
            raise StoreError(f"{self._name} is not reachable ({self._last})") from error
        self._failures = 0
        return result

    async def close(self) -> None:
        """Ends a probe that is under way. A second call does nothing."""
        probing, self._probing = self._probing, None
        if probing is not None:
            probing.cancel()
            await asyncio.wait((probing,))

    def _count(self, error: Exception) -> None:
        self._failures += 1
        self._last = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self._next_probe = self._clock() + self._rest_s

    def _probe_if_due(self) -> None:
        if self._probing is not None or self._clock() < self._next_probe:
            return
        self._probing = asyncio.get_running_loop().create_task(self._try())

    async def _try(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._probe()
        except Exception as error:
            self._count(error)
        else:
            self._failures = 0
        finally:
            self._probing = None
