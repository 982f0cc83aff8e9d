"""Groups of ranks as the worker of a `ThreadedEngine`: its face to the server's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import final

from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Send, Worker, nowhere
from tokenwire.core.tokens import (
    Control,
    EngineCard,
    EngineStatus,
    Finish,
    FinishCause,
    KvEvent,
    TokenJob,
)
from tokenwire.plugins.engines.cuda.parallel.frames import About
from tokenwire.plugins.engines.cuda.parallel.front.hub import Groups
from tokenwire.plugins.engines.cuda.parallel.front.part import Part

__all__ = ("GroupWorker",)


@final
class GroupWorker(Worker):
    def __init__(self, groups: Groups, card: EngineCard, facts: About | None = None) -> None:
        """`groups` are open. `facts`: what else is to be said of them."""
        self._more = facts or {}
        self._groups = groups
        self._card = card
        self._send: Send = nowhere
        self._is_started = False
        self._early: list[Callable[[], None]] = []
        self._about: About = {}
        """What a part said of itself: kept while none is there."""

    def start(self, send: Send) -> None:
        self._send = send
        self._groups.post(lambda: self._groups.begin(send))
        self._is_started = True
        early, self._early = self._early, []
        for call in early:
            call()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        if not self._is_started:
            # Why: nobody would hear what comes of them yet.
            self._early.append(lambda: self.submit(jobs))
        elif jobs and not self._groups.post(lambda: self._groups.submit(jobs)):
            lost = refused(self._groups.why(), FinishCause.LOST, retryable=True)
            self._send(tuple(delta for job in jobs for delta in refusals(job, lost)))

    def control(self, frames: Sequence[Control]) -> None:
        if not self._is_started:
            self._early.append(lambda: self.control(frames))
        else:
            self._groups.post(lambda: self._groups.control(frames))

    def stop(self) -> None:
        self._groups.stop()

    def refusal(self, job: TokenJob) -> Finish | None:
        groups = self._groups
        if not groups.broken and any(each.state == "ready" for each in groups.instances):
            return None
        return refused(groups.why(), FinishCause.LOST, retryable=True)

    def status(self) -> EngineStatus:
        """Sums over the parts that are there."""
        groups = self._groups
        ready = [each for each in groups.instances if each.state == "ready"]
        parts = [part for each in ready for part in each.parts]
        figures = [figure for part in parts for figure in part.figures]
        reason = "" if parts and not groups.broken else groups.why()
        return EngineStatus(
            card=self._card,
            ready=not reason,
            reason=reason,
            running=sum(part.now.running for part in parts),
            waiting=sum(part.now.waiting for part in parts),
            kv_blocks_total=sum(part.now.kv_blocks_total for part in parts),
            kv_blocks_free=sum(part.now.kv_blocks_free for part in parts),
            figures=groups.totals.with_(figures),
            about=self._facts(parts, len(ready)),
        )

    def events(self) -> AsyncIterator[KvEvent]:
        groups = self._groups
        groups.post(groups.listen)

        def wake() -> None:
            groups.post(groups.feed.pump)

        return groups.feed.read(wake)

    def join(self, timeout_s: float) -> bool:
        """After `stop`: wait for the end of all processes; whether it came."""
        return self._groups.join(timeout_s)

    def _facts(self, parts: Sequence[Part], ready: int) -> About:
        if parts:
            self._about = dict(parts[0].about)
        instances = self._groups.instances
        facts: About = {
            "layout": self._card.parallel,
            "ranks": sum(each.ranks for each in instances),
            "instances": len(instances),
            "instances_ready": ready,
            "starts": sum(each.starts for each in instances),
        }
        facts |= {
            f"instance_{each.index}": f"{each.state}: {each.reason}"
            for each in instances
            if each.reason
        }
        return self._about | self._more | facts
