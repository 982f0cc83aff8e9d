"""Looks for ranks whose connection is open and which say nothing any more. Knows no group.

A process that is stopped, or whose machine is gone, closes nothing: only its silence tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, final

from tokenwire.plugins.engines.cuda.parallel.front.waits import Timer
from tokenwire.plugins.engines.cuda.parallel.front.wire import Wire

__all__ = ("Watch",)

LOOK_S: Final = 1.0


@final
class Watch:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, longest_s: float, mute: Callable[[int], None]
    ) -> None:
        """`mute` is called once, with the rank that has said nothing for `longest_s`."""
        self._loop = loop
        self._longest_s = longest_s
        self._mute = mute
        self._timer = Timer(loop)
        self._wires: Mapping[int, Wire] = {}

    def begin(self, wires: Mapping[int, Wire]) -> None:
        """By rank; whoever leaves is taken out of it."""
        self._wires = wires
        self._next()

    def clear(self) -> None:
        self._timer.clear()

    def _next(self) -> None:
        due = self._loop.time() + LOOK_S
        self._timer.set(LOOK_S, lambda: self._look(due))

    def _look(self, due: float) -> None:
        now = self._loop.time()
        if now - due > LOOK_S:
            # Why: this process itself was stopped, and what ranks said may not be read yet.
            for wire in self._wires.values():
                wire.heard_at = now
        least = min(self._wires.values(), key=lambda wire: wire.heard_at, default=None)
        if least is None or now - least.heard_at < self._longest_s:
            self._next()
        else:
            self._mute(least.rank)
