"""granian and uvicorn behind one face, in this process and on this loop. Knows no routes."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, final

from tokenwire.core.server.edge import Edge
from tokenwire.core.server.listener import BACKLOG

__all__ = ("HttpServer", "http_server")

MOST_CONNECTIONS = 65536
"""Of one process: past it, granian leaves connections waiting in the kernel's backlog."""
HEAD_TIMEOUT_MS = 30_000
LARGEST_HEAD = 64 * 1024


class HttpServer(ABC):
    """Takes over a listening socket."""

    @abstractmethod
    async def serve(self, listener: socket.socket) -> None:
        """Serve until `stop`, then until every connection has ended. Owns the socket from now."""

    @abstractmethod
    def stop(self) -> None:
        """Accept nothing more, close idle connections, let running requests end."""

    @abstractmethod
    def cut(self) -> None:
        """Drop the connections that are left."""


def http_server(kind: Literal["granian", "uvicorn"], edge: Edge) -> HttpServer:
    return GranianServer(edge) if kind == "granian" else UvicornServer(edge)


@final
class GranianServer(HttpServer):
    """granian's embedded server (one worker, this loop), given our own socket.

    Why the private names: its public way binds by itself with SO_REUSEPORT, which lets two servers
    share a port unnoticed and knows no free port. Both names are checked by the tests.
    """

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._server: Any = None
        self._stopped = False

    async def serve(self, listener: socket.socket) -> None:
        from granian.constants import HTTPModes, Interfaces
        from granian.http import HTTP1Settings
        from granian.net import SocketHolder  # pyright: ignore[reportPrivateImportUsage]
        from granian.server.embed import Server

        from tokenwire.core.server.exchange_rsgi import RsgiApp
        from tokenwire.core.server.send_queue import SendQueues

        class OwnSocket(Server):  # type: ignore[misc, unused-ignore]
            def _init_shared_socket(self) -> None:
                self._ssp = None
                held: Any = SocketHolder  # Why: its stub knows no arguments.
                self._shd = held(listener.detach(), False, BACKLOG)

        self._server = OwnSocket(
            RsgiApp(self._edge, SendQueues()).rsgi(),
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=HEAD_TIMEOUT_MS, max_buffer_size=LARGEST_HEAD
            ),
            websockets=False,
            backlog=BACKLOG,
            backpressure=MOST_CONNECTIONS,
            log_enabled=False,
            log_access=False,
        )
        if not self._stopped:
            await self._server.serve()

    def stop(self) -> None:
        self._stopped = True
        if self._server is not None:
            self._server.stop()

    def cut(self) -> None:
        """granian gives no hold on connections: they end with their requests, or the process."""


@final
class UvicornServer(HttpServer):
    def __init__(self, edge: Edge) -> None:
        import uvicorn

        from tokenwire.core.server.exchange_asgi import AsgiEdge
        from tokenwire.core.server.patient_h11 import PatientH11

        class Quiet(uvicorn.Server):
            """Signals are the lifecycle's."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        self._server = Quiet(
            uvicorn.Config(
                AsgiEdge(edge),
                http=PatientH11,  # Why h11: httptools has no bound on a request's head
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=HEAD_TIMEOUT_MS // 1000,
                backlog=BACKLOG,
                h11_max_incomplete_event_size=LARGEST_HEAD,
            )
        )

    async def serve(self, listener: socket.socket) -> None:
        await self._server.serve(sockets=[listener])

    def stop(self) -> None:
        self._server.should_exit = True

    def cut(self) -> None:
        for connection in tuple(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
