"""Small ways to wait in one event loop, without a task. Knows nothing of what is waited for."""

from __future__ import annotations

import asyncio
import math
from typing import final

__all__ = ("Alarm", "within")


@final
class Alarm:
    """For one sleeper, who sleeps until it rings or the time is over."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def sleep(self, seconds: float) -> None:
        """What rang before counts no more: look at the world first, then sleep. inf: no limit."""
        self._rung.clear()
        timer = None
        if seconds != math.inf:
            timer = asyncio.get_running_loop().call_later(seconds, self._rung.set)
        try:
            await self._rung.wait()
        finally:
            if timer is not None:
                timer.cancel()


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for it, that long at most; whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
