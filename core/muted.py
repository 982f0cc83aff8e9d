"""One choice of which nothing is wanted: a call that only scores or echoes its prompt. Pure.

An engine makes at least one token; this drops it, uncounted. Surface of `decoder.Decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tokenwire.core.events import Event, Finished
from tokenwire.core.tokens import Finish, IdLogprobs

__all__ = ("Muted",)


@final
class Muted:
    """Ends as an answer of no tokens does: by its length."""

    __slots__ = ("choice", "generated", "reasoning_tokens", "stopped")

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.generated = 0
        self.reasoning_tokens = 0
        self.stopped: str | None = None

    def push(self, ids: Sequence[int], logprobs: Sequence[IdLogprobs] = ()) -> list[Event]:
        return []

    def finish(self, finish: Finish) -> list[Event]:
        return [Finished(self.choice, "length")]

    def save(self) -> object:
        return None

    def restore(self, state: object) -> None:
        """There is nothing to take."""
