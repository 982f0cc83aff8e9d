"""Several workers on one listening socket: starts them, lends them the store, replaces the dead."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import secrets
import signal
import socket
import tempfile
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import final

import msgspec

from tokenwire.core.config import Config
from tokenwire.core.errors import ServiceError
from tokenwire.core.host import Host
from tokenwire.core.secrets import NO_KEYS, Secret
from tokenwire.core.server.backend import Opener
from tokenwire.core.server.lending import check_workers, open_process_store
from tokenwire.core.server.orders import Orders
from tokenwire.core.server.process import Started
from tokenwire.core.server.shared_server import SharedStoreServer
from tokenwire.core.server.worker import KEY_VARIABLE, Report, WorkerBrief, work

__all__ = ("supervise",)

log = logging.getLogger(__name__)

KILL_AFTER_S = 5.0
"""Beyond the workers' own drain."""
MOST_DEATHS, DEATHS_WITHIN_S = 5, 60.0


class _Worker:
    """One process as its supervisor sees it."""

    def __init__(self, number: int, process: SpawnProcess, reports: Connection) -> None:
        self.number = number
        self.process = process
        self.reports = reports
        self.started: Started | None = None
        self.report: Report | None = None

    def hear(self) -> None:
        try:
            while self.reports.poll():
                self.report = self.reports.recv()
        except (EOFError, OSError):
            return
        if isinstance(self.report, Started):
            self.started = self.report


async def supervise(
    config: Config,
    listener: socket.socket,
    opener: Opener,
    on_started: Callable[[Started], None],
) -> int:
    """Until SIGTERM or SIGINT -> 0, or until workers cannot be kept alive -> 1, said in words."""
    host = Host(replaces=config.replaces)
    check_workers(config, host)
    store = await open_process_store(config, host)
    with tempfile.TemporaryDirectory(prefix="tokenwire-") as name:
        folder = Path(name)
        lender = SharedStoreServer(store, folder / "store.sock") if store is not None else None
        if lender is not None:
            await lender.start()
        try:
            crew = _Crew(_brief(config, opener, folder, lent=lender is not None), listener)
            return await crew.run(on_started)
        finally:
            if lender is not None:
                await lender.stop()
            if store is not None:
                await store.close()


def _brief(config: Config, opener: Opener, folder: Path, *, lent: bool) -> WorkerBrief:
    key = None
    if not config.server.keys:
        log.warning(NO_KEYS)
        key = secrets.token_hex(32)
        server = msgspec.structs.replace(config.server, keys=(Secret("env", KEY_VARIABLE),))
        config = msgspec.structs.replace(config, server=server)
    return WorkerBrief(
        name="",
        config=config,
        opener=opener,
        folder=folder,
        store=folder / "store.sock" if lent else None,
        key=key,
    )


@final
class _Crew:
    """The workers."""

    def __init__(self, brief: WorkerBrief, listener: socket.socket) -> None:
        self._brief = brief
        self._listener = listener
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Worker] = {}
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._spawned = 0
        self._said = False
        self._changed = asyncio.Event()
        self._orders = Orders()

    async def run(self, on_started: Callable[[Started], None]) -> int:
        self._orders.listen((signal.SIGTERM, signal.SIGINT))
        try:
            for number in range(1, self._brief.config.server.workers + 1):
                self._spawn(number)
            await self._watch(on_started)
            status = 0
        except ServiceError as error:
            log.error("%s", error.message)
            status = 1
        return max(status, await self._stop())

    def _spawn(self, number: int) -> None:
        self._spawned += 1
        brief = msgspec.structs.replace(self._brief, name=f"{number}-{self._spawned}")
        reports, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=work, args=(brief, self._listener, sender), name=f"tokenwire-worker-{number}"
        )
        process.start()
        sender.close()
        self._workers[number] = _Worker(number, process, reports)
        loop = asyncio.get_running_loop()
        loop.add_reader(process.sentinel, self._changed.set)
        loop.add_reader(reports.fileno(), self._changed.set)

    async def _watch(self, on_started: Callable[[Started], None]) -> None:
        """Until the order to stop. Raises ServiceError when the workers cannot be kept alive."""
        stop = asyncio.create_task(self._orders.stop.wait())
        try:
            while not stop.done():
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({stop, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._changed.clear()
                if not stop.done():
                    self._look(on_started)
        finally:
            stop.cancel()

    def _look(self, on_started: Callable[[Started], None]) -> None:
        for worker in tuple(self._workers.values()):
            worker.hear()
            if worker.started is not None:
                asyncio.get_running_loop().remove_reader(worker.reports.fileno())
            if not worker.process.is_alive():
                self._bury(worker)
        starts = [worker.started for worker in self._workers.values()]
        if not self._said and starts and all(start is not None for start in starts):
            self._said = True
            first = starts[0]
            assert first is not None
            on_started(first)

    def _bury(self, worker: _Worker) -> None:
        """Replace a dead worker, unless it shows that others would die as well."""
        self._forget(worker)
        how = f"worker {worker.number} (process {worker.process.pid}) {_end(worker.process)}"
        if worker.started is None:
            report = worker.report
            why = "" if report is None or isinstance(report, Started) else f": {report.reason}"
            raise ServiceError(message=f"{how} before it served{why}")
        now = asyncio.get_running_loop().time()
        self._deaths.append(now)
        if len(self._deaths) == MOST_DEATHS and now - self._deaths[0] < DEATHS_WITHIN_S:
            raise ServiceError(
                message=f"{how}; {MOST_DEATHS} died within {DEATHS_WITHIN_S:g} s: the server stops"
            )
        log.error("%s; another takes its place", how)
        self._spawn(worker.number)

    def _forget(self, worker: _Worker) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(worker.process.sentinel)
        loop.remove_reader(worker.reports.fileno())
        worker.process.join()
        worker.reports.close()
        self._workers.pop(worker.number, None)

    async def _stop(self) -> int:
        """Pass the order on, wait for the drains, kill what does not end."""
        self._listener.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._brief.config.server.drain_timeout + KILL_AFTER_S
        self._tell()
        told_twice = False
        while any(worker.process.is_alive() for worker in self._workers.values()):
            if self._orders.abort.is_set() and not told_twice:
                told_twice = True
                self._tell()
            if loop.time() > deadline:
                for worker in self._workers.values():
                    worker.process.kill()
            await asyncio.sleep(0.02)
        is_clean = all(_ended_well(worker) for worker in self._workers.values())
        for worker in tuple(self._workers.values()):
            self._forget(worker)
        return 0 if is_clean else 1

    def _tell(self) -> None:
        for worker in self._workers.values():
            if worker.process.is_alive():
                worker.process.terminate()


def _ended_well(worker: _Worker) -> bool:
    """By its own drain; or by the signal itself, before it served anything."""
    code = worker.process.exitcode
    return code == 0 or (worker.started is None and code == -signal.SIGTERM)


def _end(process: SpawnProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"exited with status {code}"
