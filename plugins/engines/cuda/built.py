"""What building a model gives: its loop, and what an engine needs around it."""

from __future__ import annotations

from typing import NamedTuple

from tokenwire.core.threaded_engine import Worker
from tokenwire.core.tokens import EngineCard

__all__ = ("Built",)


class Built(NamedTuple):
    worker: Worker
    card: EngineCard
    slots: int
    """Sequences that run together."""
