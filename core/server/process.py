"""One serving process from its backend's start to its drain. Knows no protocol and no engine."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from tokenwire.core.config import Config
from tokenwire.core.ports.store import Store
from tokenwire.core.server.backend import Opened, Opener
from tokenwire.core.server.edge import Edge
from tokenwire.core.server.listener import BACKLOG, url
from tokenwire.core.server.metric_files import MetricFiles
from tokenwire.core.server.metrics import Metrics
from tokenwire.core.server.orders import Orders
from tokenwire.core.server.servers import HttpServer, http_server

__all__ = ("Started", "live", "run_loop")

log = logging.getLogger(__name__)

GC_EVERY = 20_000
"""New objects between two looks of the collector."""
SWITCH_S = 0.001
"""How long one thread may keep the interpreter while another waits for it."""
GRACE_S = 2.0
"""What replies get to leave, after the calls behind them have ended or were aborted."""
CUT_S = 0.5
SHARE_EVERY_S = 0.5


class Started(Struct, frozen=True):
    """What there is to say when a process serves."""

    url: str
    models: tuple[str, ...]


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """asyncio.run on uvloop, where there is one."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


async def live(
    config: Config,
    listener: socket.socket,
    opener: Opener,
    orders: Orders,
    *,
    signals: Iterable[signal.Signals],
    on_started: Callable[[Started], None],
    store: Store | None = None,
    files: MetricFiles | None = None,
) -> int:
    """Serve until ordered to stop -> 0 after a clean drain, 1 otherwise. Owns the listener.

    Raises what the opener raises. `signals` are listened to once the backend is there: until then
    they end the process in the system's own way.
    """
    counts: dict[tuple[str, int], int] = {}
    metrics = Metrics(lambda: counts, files)
    opened = await opener(config, store, (metrics,))
    orders.listen(signals)
    # Why here: it takes Litestar, which nobody needs before.
    from tokenwire.core.server.admin import admin_app

    backend = opened.backend
    metrics.watch(backend.engine_statuses)
    admin = admin_app(opened, metrics, config.server)
    edge = Edge(backend.flow, admin, config.server, counts)
    server = http_server(config.server.http, edge)
    where = url(listener)
    listener.listen(BACKLOG)
    _settle_heap()
    # Why: long prompts are encoded in a thread, which the loop must not wait 5 ms for each time.
    sys.setswitchinterval(SWITCH_S)
    serving = asyncio.create_task(server.serve(listener))
    sharing = asyncio.create_task(_share(metrics))
    on_started(Started(where, backend.models()))
    await _first(serving, orders.stop.wait())
    crashed = serving.done()
    backend.begin_drain()
    server.stop()
    await _drain(config.server.drain_timeout, opened, edge, server, orders)
    is_clean = await _ended(serving, server) and not crashed and not orders.abort.is_set()
    opened.close()
    sharing.cancel()
    await asyncio.gather(sharing, return_exceptions=True)
    metrics.share()
    return 0 if is_clean else 1


def _settle_heap() -> None:
    """What start-up made stays, so the collector need not walk it again; and a token makes a few
    short-lived values, so it need not look every 700."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_EVERY, 20, 20)


async def _drain(
    timeout_s: float, opened: Opened, edge: Edge, server: HttpServer, orders: Orders
) -> None:
    """Running calls end by themselves, or are aborted after `timeout_s`; then their requests."""
    if edge.running:
        log.warning("stopping: %d requests are running, they get %g s", edge.running, timeout_s)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s + GRACE_S
    await _first(opened.backend.drain(timeout_s), orders.abort.wait())
    left = max(0.0, deadline - loop.time())
    await _first(edge.idle(), orders.abort.wait(), timeout_s=left)
    if edge.running:
        log.warning("stopping: %d requests did not end and are cut off", edge.running)
        server.cut()
        await edge.abort()


async def _ended(serving: asyncio.Task[None], server: HttpServer) -> bool:
    """Whether the server let go of its last connection: one that never reads can hold it."""
    done, _ = await asyncio.wait({serving}, timeout=GRACE_S)
    if not done:
        server.cut()
        done, _ = await asyncio.wait({serving}, timeout=CUT_S)
    if not done:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return True
    if serving.cancelled():
        return False
    error = serving.exception()
    if error is not None:
        log.error("%s stopped by itself", type(server).__name__, exc_info=error)
    return error is None


async def _first(
    *waits: Coroutine[Any, Any, Any] | asyncio.Task[Any], timeout_s: float | None = None
) -> None:
    """Until the first ends; the other coroutines are cancelled, other tasks are left alone."""
    own = [wait for wait in waits if not isinstance(wait, asyncio.Task)]
    tasks = [asyncio.ensure_future(wait) for wait in own]
    others = [wait for wait in waits if isinstance(wait, asyncio.Task)]
    await asyncio.wait({*tasks, *others}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("stopping: a step failed", exc_info=result)


async def _share(metrics: Metrics) -> None:
    while True:
        try:
            metrics.share()
        except OSError as error:
            log.warning("metrics of this worker are not shared: %s", error)
        await asyncio.sleep(SHARE_EVERY_S)
