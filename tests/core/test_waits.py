"""Waiting without a task: rings are not lost, times are kept."""

from __future__ import annotations

import asyncio
import math

from tokenwire.core.waits import Alarm, within


def test_it_wakes_when_it_rings_and_when_time_is_over() -> None:
    async def go() -> None:
        alarm = Alarm()
        asyncio.get_running_loop().call_soon(alarm.ring)
        await alarm.sleep(math.inf)
        await alarm.sleep(0.001)

    asyncio.run(go())


def test_within_says_whether_it_came() -> None:
    async def go() -> None:
        event = asyncio.Event()
        assert not await within(event, 0.001)
        event.set()
        assert await within(event, 10)

    asyncio.run(go())
