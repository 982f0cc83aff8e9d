"""Starts the edge over the fake deployment in a process of its own, on a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest

HERE = Path(__file__).parent
START = re.compile(r"serves .* at (http://\S+) ")


class Running:
    """A server process. `log` is what it printed so far, on both outputs."""

    def __init__(self, folder: Path, settings: dict[str, object], opener: str = "open_fake"):
        self._log = folder / f"server-{time.monotonic_ns()}.log"
        body = msgspec.json.encode({"port": 0, **settings}).decode()
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", str(HERE / "serve_fake.py"), body, opener],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TOKENWIRE_PLUGINS": "memory"},
            )
        self.url = ""

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def wait_started(self, timeout_s: float = 60) -> Running:
        self.wait(lambda: START.search(self.log) or self.process.poll() is not None, timeout_s)
        match = START.search(self.log)
        assert match is not None, self.log
        self.url = match.group(1)
        return self

    def wait(self, is_true, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_true():
            assert time.monotonic() < deadline, f"waited {timeout_s} s in vain; log:\n{self.log}"
            time.sleep(0.02)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def socket(self, receive_buffer: int | None = None) -> socket.socket:
        made = socket.socket()
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.settimeout(30)
        try:
            made.connect(("127.0.0.1", self.port))
        except OSError:
            made.close()
            raise
        return made

    def seen(self) -> dict[str, float]:
        with self.client() as client:
            return client.get("/seen").json()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@pytest.fixture
def launch(tmp_path):
    """Start servers that the test stops, or that are stopped after it."""
    running = []

    def start(opener: str = "open_fake", **settings: object) -> Running:
        running.append(Running(tmp_path, settings, opener))
        return running[-1]

    yield start
    for server in running:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@pytest.fixture(scope="module", params=["granian", "uvicorn"])
def server(request, tmp_path_factory):
    """One server of each kind for a module's tests."""
    settings = {
        "http": request.param,
        "max_body": 100_000,
        "debug": True,
        "health_check": "/alive",
        "cors": {"origins": ["https://app.example"]},
    }
    running = Running(tmp_path_factory.mktemp("server"), settings).wait_started()
    yield running
    assert running.stop() == 0, running.log
    # The one traceback is of the fake's own bug.
    assert running.log.count("Traceback") == running.log.count("KeyError: 'a secret"), running.log
