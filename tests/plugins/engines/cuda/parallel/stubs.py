"""Groups without torch and without processes: mock engines behind real sockets, in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tokenwire.core.host import lone_services
from tokenwire.core.ports.engine import Engine
from tokenwire.core.threaded_engine import Send, Worker
from tokenwire.core.tokens import Control, EngineCard, EngineStatus, KvEvent, TokenJob
from tokenwire.plugins.engines.cuda.parallel.bridge import serve
from tokenwire.plugins.engines.cuda.parallel.frames import Hello
from tokenwire.plugins.engines.cuda.parallel.front.building import build_groups
from tokenwire.plugins.engines.cuda.parallel.front.launching import Launched
from tokenwire.plugins.engines.cuda.parallel.line import Line
from tokenwire.plugins.engines.cuda.parallel.order import Order, read_order
from tokenwire.plugins.engines.cuda.settings import CudaSettings
from tokenwire.plugins.engines.mock.build import build as build_mock
from tokenwire.plugins.engines.mock.settings import MockSettings

__all__ = ("LoopWorker", "Plan", "Stubs", "groups", "mock_worker")


class LoopWorker(Worker):
    """A mock engine on an event loop in a thread of its own."""

    def __init__(self, settings: MockSettings) -> None:
        self._engine: Engine
        self._settings = settings
        self._loop = asyncio.SelectorEventLoop()
        self._made = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._send: Send
        self._stops = False

    def start(self, send: Send) -> None:
        self._send = send
        self._thread.start()
        self._made.wait()

    def submit(self, jobs: Sequence[TokenJob]) -> None:
        self._post(lambda: self._engine.submit(jobs))

    def control(self, frames: Sequence[Control]) -> None:
        self._post(lambda: self._engine.control(frames))

    def stop(self) -> None:
        self._post(self._drain)

    def status(self) -> EngineStatus:
        return self._engine.status()

    async def events(self) -> AsyncIterator[KvEvent]:
        loop, found = asyncio.get_running_loop(), asyncio.Queue[KvEvent]()

        async def read() -> None:
            async for event in self._engine.events():
                loop.call_soon_threadsafe(found.put_nowait, event)

        self._post(lambda: setattr(self, "_reading", asyncio.ensure_future(read())))
        while True:
            yield await found.get()

    def _drain(self) -> None:
        if not self._stops:
            self._stops = True
            self._ending = asyncio.ensure_future(self._engine.drain(0))

    def _post(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        self._loop.run_until_complete(self._main())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _main(self) -> None:
        self._engine = build_mock(self._settings, lone_services())
        self._made.set()
        async for batch in self._engine.batches():
            self._send(batch)


class Stubs(Launched):
    """The threads of one start of one group, as `launch` makes them: `parts` leaders, each with
    `followers`. Tests change what the next start does through `plan`."""

    def __init__(self, path: Path, exited: Callable[[int], None], plan: Plan) -> None:
        self.order = read_order(path)
        self.lines: dict[int, Line] = {}
        self.waves: list[tuple[int, int]] = []
        """(rank, wave), as they were heard."""
        self.gone = threading.Event()
        self._plan = plan
        self._exited = exited
        self._threads = [
            threading.Thread(target=self._rank, args=(rank,), daemon=True)
            for rank in range(plan.parts * (1 + plan.followers))
        ]
        threading.Thread(target=self._wait, daemon=True).start()

    def end(self) -> None:
        self.gone.set()
        for line in tuple(self.lines.values()):
            line.end()

    def _wait(self) -> None:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(30)
        self._exited(0)

    def _rank(self, rank: int) -> None:
        plan = self._plan
        if rank in plan.absent:
            self.gone.wait()
            return
        line = self.lines[rank] = Line.enter(self.order, rank, gone=lambda: None)
        if plan.fails:
            line.fail(plan.fails)
            return
        line.progress(1, 2)
        if rank in plan.silent:
            self.gone.wait()
        elif rank % (1 + plan.followers):
            line.send(Hello())
            for _ in line.frames():
                pass
        else:
            worker, card, slots = plan.make(self.order)
            serve(
                line,
                worker,
                card,
                slots,
                part=rank // (1 + plan.followers),
                on_wave=lambda wave: self.waves.append((rank, wave)),
            )
        line.close()


def mock_worker(settings: MockSettings) -> tuple[Worker, EngineCard, int]:
    """With its card, and how many sequences it is said to run."""
    return LoopWorker(settings), build_mock(settings, lone_services()).status().card, 8


class Plan:
    """What groups are made of, and how they misbehave."""

    def __init__(self, mock: MockSettings, *, parts: int = 1, followers: int = 0) -> None:
        self.mock = mock
        self.parts = parts
        self.followers = followers
        self.fails = ""
        """What every rank says in place of Hello."""
        self.silent: Sequence[int] = ()
        """Ranks that never say Hello."""
        self.absent: Sequence[int] = ()
        """Ranks that never connect."""
        self.started: list[Stubs] = []

    def make(self, order: Order) -> tuple[Worker, EngineCard, int]:
        """What one leader serves."""
        return mock_worker(self.mock)

    def launch(self, path: Path, exited: Callable[[int], None]) -> Launched:
        stubs = Stubs(path, exited, self)
        self.started.append(stubs)
        return stubs

    def drop(self, rank: int) -> None:
        """As if the rank's process had died: its connection closes."""
        self.started[-1].lines[rank].close()


@cache
def _no_weights() -> Path:
    return Path(mkdtemp(prefix="tokenwire-none-"))


def groups(plan: Plan, **fields: object) -> Engine:
    """An engine over groups as `plan` says."""
    base = {"path": str(_no_weights()), "grammar": "none"}
    layout = {1: "TP_1"}.get(plan.parts, f"DEP_{plan.parts}")
    if plan.followers:
        layout = f"TP_{1 + plan.followers}" + ("" if plan.parts == 1 else f" x {layout}")
    base["parallel_strategy"] = layout
    return build_groups(CudaSettings(**(base | fields)), lone_services(), launch=plan.launch)
