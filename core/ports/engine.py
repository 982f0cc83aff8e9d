"""The engine port: token ids in, token ids out. Knows no text, no roles, no protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence

from tokenwire.core.tokens import Control, EngineStatus, KvEvent, TokenDelta, TokenJob

__all__ = ("Engine",)


class Engine(ABC):
    """One engine, wherever it runs. Used from one event loop; the calls below never block it.

    Laws:
    1. every choice of a submitted job gets deltas that begin at `at` = len(resume_ids), without
       gap or overlap, and exactly one `finish`, on the last; the first and last carry `counts`;
    2. ids are in the vocabulary, and are ids: nothing else of a prompt is ever logged;
    3. max_tokens is exact, counting the matched id; matched ids are in `finish.matched` alone;
       ids that are a proper prefix of a stop sequence are held back;
    4. a refused job (unknown field needed, too long, overloaded, draining) gets one error finish a
       choice, and disturbs no other;
    5. an abort ends the choice within one step, with finish abort(reason), and frees what it held;
       aborting what is over or unknown does nothing;
    6. interleaved jobs give what each gives alone (greedy, or by seed);
    7. a job without credit is held at the card's cap and goes on when credit comes;
    8. status never claims capacity that is not there.
    """

    @abstractmethod
    def submit(self, jobs: Sequence[TokenJob]) -> None:
        """Take jobs. Never raises for one: it is refused by law 4."""

    @abstractmethod
    def control(self, frames: Sequence[Control]) -> None:
        """Abort, credit, release. Unknown jobs are no error: they may just have ended."""

    @abstractmethod
    def batches(self) -> AsyncIterator[tuple[TokenDelta, ...]]:
        """One tuple an engine step, until drained. Has one reader; starts the engine."""

    def events(self) -> AsyncIterator[KvEvent]:
        """KV events, a snapshot first. Engines without a block cache have none."""
        raise NotImplementedError

    @abstractmethod
    def status(self) -> EngineStatus:
        """What it is doing now, with its card."""

    @abstractmethod
    async def drain(self, timeout_s: float) -> None:
        """Refuse new jobs, wait for the running ones, abort (drain) those left after `timeout_s`,
        then end `batches` and free everything. A second call waits for the first."""
