"""The router port: which engine of a fleet takes a job. Pure: a snapshot in, a choice out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from msgspec import Struct

from tokenwire.core.tokens import EngineStatus

__all__ = ("EngineView", "Router", "RouterChoice", "RouterQuery")


class EngineView(Struct, frozen=True):
    """One engine as the gateway sees it: its last status, and what was booked on it since."""

    id: str
    status: EngineStatus
    booked_jobs: int = 0
    booked_tokens: int = 0


class RouterQuery(Struct, frozen=True):
    """What is known of the job. `blocks`: its prompt's block hashes, first to last."""

    prompt_tokens: int
    expected_tokens: int | None = None
    blocks: tuple[bytes, ...] = ()
    session: str | None = None
    exclude: frozenset[str] = frozenset()
    """Engines that already failed this job."""
    seed: int = 0
    """For choices among equals; from the call, so that a replay chooses the same."""


class RouterChoice(Struct, frozen=True):
    """The engine chosen, and why, for people and traces."""

    engine: str
    reason: str


class Router(ABC):
    """Laws: pure and total (None only when no engine may take the job); the order of the fleet
    makes no difference; never an engine that is not ready or is excluded; load never attracts."""

    @abstractmethod
    def pick(self, query: RouterQuery, fleet: tuple[EngineView, ...]) -> RouterChoice | None: ...
