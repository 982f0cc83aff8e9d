"""All groups of a model, on one event loop in a thread of their own: jobs out, deltas in.

Used from any thread through `post`; whoever starts it waits in `open` until every group is ready.
Knows no HTTP and no torch.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final, final

from msgspec.structs import replace

from tokenwire.core import blocks
from tokenwire.core.errors import ConfigError
from tokenwire.core.job_check import refused
from tokenwire.core.outlet import refusals
from tokenwire.core.threaded_engine import Send, nowhere
from tokenwire.core.tokens import Control, EngineCard, FinishCause, KvEvent, Release, TokenDelta
from tokenwire.core.tokens import TokenJob as Job
from tokenwire.plugins.engines.cuda.feed import KvFeed
from tokenwire.plugins.engines.cuda.parallel.frames import Enter
from tokenwire.plugins.engines.cuda.parallel.front.cards import joint, lack
from tokenwire.plugins.engines.cuda.parallel.front.choosing import Load, choose_part
from tokenwire.plugins.engines.cuda.parallel.front.door import listen
from tokenwire.plugins.engines.cuda.parallel.front.held import HeldBlocks
from tokenwire.plugins.engines.cuda.parallel.front.instance import Instance
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launch
from tokenwire.plugins.engines.cuda.parallel.front.part import Part
from tokenwire.plugins.engines.cuda.parallel.front.totals import Totals
from tokenwire.plugins.engines.cuda.parallel.front.wire import Wire
from tokenwire.plugins.engines.cuda.parallel.order import FOLDER, Order
from tokenwire.plugins.engines.cuda.progress import Progress

__all__ = ("Groups",)

LOG = logging.getLogger("tokenwire.engine.cuda")
LEAVE_S: Final = 60.0
"""How long processes may take to end before nobody waits for them any more."""


@final
class Groups:
    def __init__(
        self, order: Order, ranks: int, count: int, launch: Launch, told: Progress | None = None
    ) -> None:
        """`count` groups of `ranks` each, as `order` says."""
        self._order = order
        self._ranks = ranks
        self._count = count
        self._launch = launch
        self._told = told
        self.instances: tuple[Instance, ...] = ()
        self.card: EngineCard | None = None
        """What all parts can do, once they are there."""
        self.totals = Totals()
        self.held = HeldBlocks()
        self.feed = KvFeed(self.held.log, self.held.snapshot)
        self.broken = ""
        """Why it can never work again."""
        self._listens = False
        self._send: Send = nowhere
        self._opened: Future[None] = Future()
        self._loop = asyncio.SelectorEventLoop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="tokenwire-groups", daemon=True)

    # --- from any thread ---------------------------------------------------------------------

    def open(self) -> None:
        """Start all groups, and wait until they are ready. Raises ConfigError: why they are not,
        when all their processes have ended; or FellBack: what to start instead, likewise."""
        self._thread.start()
        atexit.register(self._leave)
        try:
            self._opened.result()
        except BaseException:
            self.stop()
            self._thread.join(LEAVE_S)
            raise

    def post(self, call: Callable[[], None]) -> bool:
        """Do it on the loop, after what was posted before. False: that has ended."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            return False
        return True

    def stop(self) -> None:
        """End all groups, for good. Does not wait."""
        self.post(self._stop)

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of all processes; whether it came."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _leave(self) -> None:
        """As the process ends: its groups first, so that they end well and leave no file."""
        self.stop()
        self._thread.join(LEAVE_S)

    # --- on the loop -------------------------------------------------------------------------

    def begin(self, send: Send) -> None:
        self._send = send

    def submit(self, jobs: Sequence[Job]) -> None:
        shares: dict[int, tuple[Instance, Part, list[Job]]] = {}
        for job in jobs:
            place = self._place(job)
            if place is None:
                lost = refused(self.why(), FinishCause.LOST, retryable=True)
                self._send(tuple(refusals(job, lost)))
                continue
            instance, part = place
            part.jobs.add(job)
            shares.setdefault(part.key, (instance, part, []))[2].append(job)
        for instance, part, share in shares.values():
            instance.submit(part, share)

    def control(self, frames: Sequence[Control]) -> None:
        for instance, part in self._parts():
            mine = [
                frame for frame in frames if isinstance(frame, Release) or part.jobs.has(frame.job)
            ]
            if mine:
                instance.control(part, mine)

    def listen(self) -> None:
        """KV events are wanted."""
        if not self._listens:
            self._listens = True
            for instance in self.instances:
                instance.listen()

    def why(self) -> str:
        """Why no group is ready."""
        reasons = [each.reason for each in self.instances if each.reason]
        return self.broken or "; ".join(dict.fromkeys(reasons)) or "no group is ready"

    # --- what groups say ---------------------------------------------------------------------

    def deltas(self, batch: tuple[TokenDelta, ...]) -> None:
        self._send(batch)

    def events(self, part: Part, events: Sequence[KvEvent]) -> None:
        for event in events:
            self.held.hear(part.key, event)
        self.feed.pump()

    def left(self, part: Part) -> None:
        self.totals.keep(part.figures)
        self.held.drop(part.key)
        self.feed.pump()

    def misfit(self, cards: Sequence[EngineCard]) -> str:
        return "" if self.card is None else lack(self.card, cards)

    def moved(self, instance: Instance) -> None:
        if self._opened.done():
            if instance.state == "ready":
                LOG.info("group %d is ready", instance.index)
                if self._listens:
                    instance.listen()
        elif instance.state == "down":
            failed = ConfigError(f"engine cuda: {instance.reason}")
            self._opened.set_exception(instance.fallen or failed)
        else:
            self._tell_progress()
            self._try_open()
        if self.instances and all(each.state == "ended" for each in self.instances):
            self._ended.set()

    # --- inside ------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except ConfigError as error:
            self._opened.set_exception(error)
        except BaseException as error:
            LOG.critical("the groups' loop failed", exc_info=error)
            self.broken = f"the groups' loop failed: {type(error).__name__}"
            for instance in self.instances:
                instance.abandon(self.broken)
            if not self._opened.done():
                self._opened.set_exception(ConfigError(f"engine cuda: {self.broken}: {error}"))
        finally:
            self.feed.close()
            self._loop.close()
            atexit.unregister(self._leave)

    async def _main(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER))
        server = None
        try:
            rendezvous = self._order.settings.rendezvous
            server, address = await listen(lambda: Wire(self._admit), folder, rendezvous)
            order = replace(self._order, front=address)
            self.instances = tuple(
                Instance(replace(order, instance=index), self._ranks, self._launch, folder, self)
                for index in range(self._count)
            )
            for instance in self.instances:
                instance.start()
            await self._ended.wait()
        finally:
            if server is not None:
                server.close()
            shutil.rmtree(folder, ignore_errors=True)

    def _admit(self, wire: Wire, enter: Enter) -> Instance | None:
        for instance in self.instances:
            if instance.owns(enter):
                instance.admit(wire)
                return instance
        return None

    def _try_open(self) -> None:
        """They are ready when all are."""
        if not self.instances or any(each.state != "ready" for each in self.instances):
            return
        cards = [part.card for _, part in self._parts()]
        try:
            self.card = joint(cards, self._order.settings.layout.name)
        except ConfigError as error:
            self._opened.set_exception(error)
            return
        for instance in self.instances:
            instance.restarts = True
        if len(cards) > 1 and self.card.hash_root:
            # Why: a job goes where its prompt's blocks are.
            self.listen()
        self._opened.set_result(None)

    def _tell_progress(self) -> None:
        if self._told is not None:
            loads = [pair for each in self.instances for pair in each.progress.values()]
            self._told(sum(done for done, _ in loads), sum(total for _, total in loads))

    def _stop(self) -> None:
        for instance in self.instances:
            instance.stop()

    def _parts(self) -> list[tuple[Instance, Part]]:
        """Of the groups that are ready."""
        return [
            (instance, part)
            for instance in self.instances
            if instance.state == "ready"
            for part in instance.parts
        ]

    def _place(self, job: Job) -> tuple[Instance, Part] | None:
        places = self._parts()
        if len(places) < 2:
            return places[0] if places else None
        for place in places:
            if place[1].jobs.has(job.job):
                # Why there: what is said of the name concerns both attempts.
                return place
        chain = self._known(job)
        loads = [
            Load(part.jobs.tokens, self.held.prefix(part.key, chain) * part.card.block_size)
            for _, part in places
        ]
        return places[choose_part(loads)]

    def _known(self, job: Job) -> list[bytes]:
        """The hashes of its prompt's first blocks, as far as any part holds them."""
        card = self.card
        if card is None or not card.hash_root:
            return []
        size = card.block_size
        root = bytes.fromhex(card.hash_root)
        return self.held.known(blocks.chain(root, job.prompt, size, blocks.extras(job, size)))
