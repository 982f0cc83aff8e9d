"""Signals as orders: the first says stop, the second says stop waiting. Knows no server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from typing import final

__all__ = ("Orders",)


@final
class Orders:
    """Of one process. Made on its loop."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        """Take no more calls, let the running ones end."""
        self.abort = asyncio.Event()
        """End now."""

    def give(self) -> None:
        """One more order than before."""
        if self.stop.is_set():
            self.abort.set()
        self.stop.set()

    def listen(self, signals: Iterable[signal.Signals]) -> None:
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, self.give)
