"""One leader as the front sees it: what it runs, what it holds, what it last said of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.tokens import EngineCard, TokenDelta, TokenJob
from tokenwire.plugins.engines.cuda.parallel.frames import FrameError, Hello, Jobs
from tokenwire.plugins.engines.cuda.parallel.front.open_jobs import OpenJobs
from tokenwire.plugins.engines.cuda.parallel.front.wire import Wire

__all__ = ("Part",)


@final
class Part:
    def __init__(self, key: int, wire: Wire, hello: Hello, card: EngineCard) -> None:
        """`key`: unlike any other part's of the front, and the same after a restart."""
        self.key = key
        self.wire = wire
        self.card = card
        self.slots = hello.slots
        self.about = hello.about
        self.now = hello.figures
        """Its status."""
        self.figures = hello.figures.figures
        self.jobs = OpenJobs()

    def send(self, wave: int, jobs: Sequence[TokenJob]) -> list[TokenDelta]:
        """Pass on jobs that were added already -> the refusals of those that no frame holds."""
        try:
            self.wire.send(Jobs(wave, tuple(jobs)))
        except FrameError as error:
            if len(jobs) > 1:
                half = len(jobs) // 2
                return self.send(wave, jobs[:half]) + self.send(wave, jobs[half:])
            deltas = refusals(jobs[0], refused(f"the job is too large: {error}"))
            return [delta for delta in deltas if self.jobs.take(delta)]
        return []

    def took(self, batch: Sequence[TokenDelta]) -> tuple[TokenDelta, ...]:
        """What came, without what is of no open job."""
        return tuple(delta for delta in batch if self.jobs.take(delta))
