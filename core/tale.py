"""What observers are told of one call: that it began, and once, however it went, its end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import final

from tokenwire.core.events import Usage
from tokenwire.core.ports.observer import CallEnded, CallStarted, Observer
from tokenwire.core.stream import AnswerStream

__all__ = ("Tale",)

log = logging.getLogger("tokenwire.tale")


@final
class Tale:
    """Tells the observers of one call: once that it started, once that it ended."""

    def __init__(self, observers: Sequence[Observer], started: CallStarted) -> None:
        self._observers = observers
        self._started = started
        self._tell(lambda observer: observer.call_started(started))

    def end(
        self, stream: AnswerStream, outcome: str, status: int, now: float, *, is_cached: bool
    ) -> None:
        started = self._started
        first = stream.first_token_at
        ended = CallEnded(
            request_id=started.request_id,
            protocol=started.protocol,
            model=started.model,
            tenant=started.tenant,
            outcome=outcome,
            status=status,
            usage=stream.generation.usage or stream.generation.count(),
            computed_tokens=stream.generation.computed_tokens,
            ttft_s=None if first is None else first - started.time,
            duration_s=now - started.time,
            itl_counts=tuple(stream.itl_counts),
            itl_sum_s=stream.itl_sum,
            cached_answer=is_cached,
        )
        self._tell(lambda observer: observer.call_ended(ended))

    def end_without_stream(
        self, usage: Usage, computed_tokens: int, outcome: str, status: int, now: float
    ) -> None:
        """Of a call whose answer was no stream of events."""
        started = self._started
        ended = CallEnded(
            request_id=started.request_id,
            protocol=started.protocol,
            model=started.model,
            tenant=started.tenant,
            outcome=outcome,
            status=status,
            usage=usage,
            computed_tokens=computed_tokens,
            ttft_s=None,
            duration_s=now - started.time,
        )
        self._tell(lambda observer: observer.call_ended(ended))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:
                log.exception("observer %r failed", observer)
