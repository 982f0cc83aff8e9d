"""A real server in its own process, on a free loopback port, stopped by its own pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from msgspec import Struct

__all__ = ("COMMAND", "LiveServer", "live_server")

STARTS_WITHIN_S = 180.0
COMMAND = Path(sys.executable).with_name("tokenwire")


class LiveServer(Struct, frozen=True):
    """Where it listens, and the process that can be signalled."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def script(self, name: str, body: Mapping[str, object]) -> None:
        """Tell the mock what to produce."""
        httpx.put(f"{self.url}/mock/scripts/{name}", json=body).raise_for_status()


@contextmanager
def live_server(
    config: str, folder: Path, *, command: Path = COMMAND, **environ: str
) -> Iterator[LiveServer]:
    """`config` is the text of a YAML file; it is ready when this enters."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = folder / "tokenwire.yaml"
    path.write_text(config)
    log = folder / "server.log"
    env = {**os.environ, "TOKENWIRE_SERVER_PORT": str(port), **environ}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(command), "serve", "--config", str(path)],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
        )
    server = LiveServer(f"http://127.0.0.1:{port}", process, log)
    try:
        _wait(server)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _wait(server: LiveServer) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise AssertionError(f"the server ended: {server.log.read_text()[-2000:]}")
        try:
            if httpx.get(f"{server.url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the server was not ready in time: {server.log.read_text()[-2000:]}")
