"""A worker process of a server that has several: how it is told, and what it tells back."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from tokenwire.core.config import Config
from tokenwire.core.errors import TokenwireError
from tokenwire.core.server.backend import Opener
from tokenwire.core.server.logs import set_up_logs
from tokenwire.core.server.metric_files import MetricFiles
from tokenwire.core.server.orders import Orders
from tokenwire.core.server.process import Started, live, run_loop
from tokenwire.core.server.shared_store import SharedStore

__all__ = ("KEY_VARIABLE", "Failed", "Report", "WorkerBrief", "work")

KEY_VARIABLE = "TOKENWIRE_WORKERS_KEY"
"""Where workers find the signing key that the supervisor made, when none is configured."""


class WorkerBrief(Struct, frozen=True):
    """Everything a worker must know. Travels by pickle, to a child alone."""

    name: str
    config: Config
    opener: Opener
    folder: Path
    """Where metrics are shared."""
    store: Path | None
    """The supervisor's store, by socket; None: the workers' stores are one anyway."""
    key: str | None
    """Value of KEY_VARIABLE."""


class Failed(Struct, frozen=True):
    """It could not start, and why."""

    reason: str


Report: TypeAlias = Started | Failed


def work(brief: WorkerBrief, listener: socket.socket, reports: Connection) -> None:
    """The process. SIGTERM stops it; so does the end of its supervisor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's; the supervisor passes it on
    set_up_logs()
    if brief.key is not None:
        os.environ[KEY_VARIABLE] = brief.key
    try:
        status = run_loop(_work(brief, listener, reports))
    except TokenwireError as error:
        reports.send(Failed(str(error)))
        status = 1
    sys.exit(status)


async def _work(brief: WorkerBrief, listener: socket.socket, reports: Connection) -> int:
    orders = Orders()
    parent = multiprocessing.parent_process()
    if parent is not None:
        loop = asyncio.get_running_loop()
        loop.add_reader(parent.sentinel, _orphaned, loop, parent.sentinel, orders)
    return await live(
        brief.config,
        listener,
        brief.opener,
        orders,
        signals=(signal.SIGTERM,),
        on_started=reports.send,
        store=SharedStore(brief.store) if brief.store is not None else None,
        files=MetricFiles(brief.folder, brief.name),
    )


def _orphaned(loop: asyncio.AbstractEventLoop, sentinel: int, orders: Orders) -> None:
    loop.remove_reader(sentinel)
    orders.give()
