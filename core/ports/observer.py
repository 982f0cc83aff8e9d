"""The observer port: told of calls, never asked."""

from __future__ import annotations

from abc import ABC

from msgspec import Struct

from tokenwire.core.events import Usage
from tokenwire.core.prompt import HistoryNote

__all__ = ("ITL_BOUNDS", "CallEnded", "CallStarted", "Observer")

ITL_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
"""Seconds: upper bounds of the inter-token latency buckets; one more bucket holds what is above."""


class CallStarted(Struct, frozen=True):
    """A call was decoded and goes to its engine. `time` is perf_counter's, in seconds."""

    request_id: str
    protocol: str
    model: str
    tenant: str
    stream: bool
    prompt_tokens: int
    time: float
    user: str | None = None
    session: str | None = None
    """As the client says (for audits and abuse reports); unlike the tenant, not to be trusted."""
    history: HistoryNote | None = None
    """Whether the prompt goes on from the conversation's last turn."""


class CallEnded(Struct, frozen=True):
    """A call is over. `outcome`: "ok", "cancelled", or the error's word."""

    request_id: str
    protocol: str
    model: str
    tenant: str
    outcome: str
    status: int
    usage: Usage | None
    computed_tokens: int
    ttft_s: float | None
    duration_s: float
    itl_counts: tuple[int, ...] = ()
    """Inter-token latencies counted by ITL_BOUNDS, len(ITL_BOUNDS) + 1 numbers, or none."""
    itl_sum_s: float = 0.0
    cached_answer: bool = False


class Observer(ABC):  # noqa: B024 - both methods have a default: an observer may want one only
    """Laws: called per call, never per token; quick; an exception is logged and changes nothing."""

    def call_started(self, event: CallStarted) -> None:  # noqa: B027
        """The prompt is rendered; the job goes out next."""

    def call_ended(self, event: CallEnded) -> None:  # noqa: B027
        """Exactly once for each call_started."""
