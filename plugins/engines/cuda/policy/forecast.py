"""How much of their allowed output running sequences are expected to use. Knows no sequence.

Strategy: a ratio that starts high, decays a little each step, and jumps up when the forecast was
wrong, that is when a running sequence had to give way."""

from __future__ import annotations

from typing import final

__all__ = ("Forecast",)

INITIAL = 0.7
FLOOR = 0.1
DECAY_STEPS = 600
CLIP_TOKENS = 4096
HEADROOM_STEPS = 20


@final
class Forecast:
    def __init__(
        self, initial: float = INITIAL, floor: float = FLOOR, steps: int = DECAY_STEPS
    ) -> None:
        self.ratio = initial
        self._floor = floor
        self._decay = (initial - floor) / steps

    def decay(self) -> None:
        ratio = self.ratio - self._decay
        self.ratio = ratio if ratio > self._floor else self._floor

    def jump(self, made: int, allowed: int, count: int) -> None:
        """After a preemption: `made` and `allowed` output tokens of the `count` that still run."""
        wanted = (made + HEADROOM_STEPS * count) / max(allowed, 1)
        self.ratio = min(1.0, max(self.ratio, wanted))

    def output(self, allowed: int, expected: int | None) -> int:
        """Output tokens still to come of `allowed`; `expected` is what the client foresees."""
        if expected is not None:
            return min(allowed, max(expected, 0))
        return int(min(allowed, CLIP_TOKENS) * self.ratio)
