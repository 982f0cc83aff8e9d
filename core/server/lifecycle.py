"""Serves a configuration from bind to exit status. What the command line calls."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence

from tokenwire.core import __version__
from tokenwire.core.config import Config
from tokenwire.core.errors import ConfigError, PluginError
from tokenwire.core.mock_mode import refuse_public_mock
from tokenwire.core.ports.observer import Observer
from tokenwire.core.ports.store import Store
from tokenwire.core.server.backend import Opened, Opener
from tokenwire.core.server.listener import bind
from tokenwire.core.server.logs import set_up_logs
from tokenwire.core.server.orders import Orders
from tokenwire.core.server.process import Started, live, run_loop

__all__ = ("run",)


async def _open(config: Config, store: Store | None, observers: Sequence[Observer]) -> Opened:
    # Why here: the port is taken before anything heavy is imported.
    from tokenwire.core.server.opening import open_deployment

    return await open_deployment(config, store, observers)


def run(config: Config, opener: Opener = _open) -> int:
    """Bind, load, serve, drain -> the process's exit status; what went wrong is said on stderr."""
    try:
        refuse_public_mock(config)
        listener = bind(config.server)
        set_up_logs()
        for warning in config.warnings:
            print(f"tokenwire: {warning}", file=sys.stderr)
        with listener:
            return _serve(config, listener, opener)
    except (ConfigError, PluginError) as error:
        print(f"tokenwire: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _serve(config: Config, listener: socket.socket, opener: Opener) -> int:
    def say(started: Started) -> None:
        print(_start_line(config, started), flush=True)

    async def alone() -> int:
        signals = (signal.SIGTERM, signal.SIGINT)
        return await live(config, listener, opener, Orders(), signals=signals, on_started=say)

    if config.server.workers == 1:
        return run_loop(alone())
    from tokenwire.core.server.supervisor import supervise

    return run_loop(supervise(config, listener, opener, say))


def _start_line(config: Config, started: Started) -> str:
    count = config.server.workers
    models = ", ".join(started.models) or "no model"
    processes = "1 process" if count == 1 else f"{count} processes"
    how = f"{config.server.http}, {processes}"
    return f"Tokenwire {__version__} serves {models} at {started.url} ({how})"
