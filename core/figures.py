"""What an engine counts of itself: the figures' closed list, and histograms that cost little.

An engine sends them in its status by name; whoever shows them looks the rest up here. Knows no
engine and no format.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, final

from msgspec import Struct

from tokenwire.core.tokens import Figure

__all__ = ("FIGURES", "FigureKind", "Histogram", "known")

LONG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5)


@final
class FigureKind(Struct, frozen=True):
    """`label`: what the figure is told apart by, beside the model; "": nothing."""

    kind: Literal["counter", "gauge", "histogram"]
    help: str
    label: str = ""
    bounds: tuple[float, ...] = ()
    """Of a histogram: upper bounds in seconds; one more bucket holds what is above."""

    @property
    def width(self) -> int:
        """How many numbers one has: buckets and the sum, or one."""
        return len(self.bounds) + 2 if self.kind == "histogram" else 1


FIGURES = {
    "memory_bytes": FigureKind("gauge", "Memory of the device."),
    "memory_used_bytes": FigureKind("gauge", "Memory of the device in use, by whomever."),
    "kv_bytes": FigureKind("gauge", "Memory reserved for KV."),
    "kv_used_bytes": FigureKind("gauge", "KV memory that sequences hold."),
    "kv_cached_bytes": FigureKind("gauge", "KV memory that only the prefix cache holds."),
    "kv_query_tokens": FigureKind("counter", "Prompt tokens looked for in the prefix cache."),
    "kv_hit_tokens": FigureKind("counter", "Prompt tokens found there."),
    "preemptions": FigureKind("counter", "Sequences that gave way and are computed again."),
    "tokens": FigureKind(
        "counter",
        "Tokens by source: prompt_computed, prompt_cached, draft_accepted, draft_rejected, "
        "generated (accepted drafts are among them).",
        "source",
    ),
    "steps": FigureKind("counter", "Steps that ran."),
    "expert_balancedness": FigureKind(
        "gauge",
        "Mean over most loaded rank of a layer's experts, over the last steps that were counted.",
        "layer",
    ),
    "expert_rebalances": FigureKind("counter", "Times that experts were placed anew."),
    "expert_moves": FigureKind("counter", "Experts that came to another place, layer by layer."),
    "op_errors": FigureKind("counter", "Errors in steps, by the op that failed.", "op"),
    "queue_seconds": FigureKind(
        "histogram", "From a sequence's arrival to its first step.", bounds=LONG
    ),
    "prefill_seconds": FigureKind(
        "histogram", "From its first step to its first token.", bounds=LONG
    ),
    "inter_token_seconds": FigureKind(
        "histogram", "Between one token of a sequence and the next.", bounds=SHORT
    ),
    "step_seconds": FigureKind(
        "histogram", "From a step's launch, or the end of the one before, to its end.", bounds=SHORT
    ),
}


def known(figures: Sequence[Figure]) -> list[Figure]:
    """Those that stand in the list, with as many numbers as they have here: an engine of another
    version may send others."""
    found = []
    for figure in figures:
        kind = FIGURES.get(figure.name)
        if kind is not None and len(figure.values) == kind.width:
            found.append(figure)
    return found


@final
class Histogram:
    """Counts into the buckets of one figure."""

    __slots__ = ("_bounds", "_counts", "_name", "_sum")

    def __init__(self, name: str) -> None:
        self._name = name
        self._bounds = FIGURES[name].bounds
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += times
        self._sum += seconds * times

    def figure(self) -> Figure:
        return Figure(self._name, (*self._counts, self._sum))
