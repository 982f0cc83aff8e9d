"""A server in a process of its own, and the CPU that its whole process tree has used."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

RUN = "from tokenwire.core.cli import main; main()"
START = re.compile(r" at (http://\S+) ")


class ServerProcess:
    """`tokenwire serve`, pinned to one core where that can be done. A context manager."""

    def __init__(self, config: str, *, core: int | None = 0) -> None:
        """`config`: a YAML file's text."""
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "config.yaml"
        path.write_text(config)
        self._log = Path(self._folder.name) / "log"
        taskset = shutil.which("taskset")
        pin = [taskset, "-c", str(core)] if taskset and core is not None else []
        command = [*pin, sys.executable, "-c", RUN, "serve"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--config", str(path), "--port", "0"], stdout=log, stderr=log
            )
        self.is_pinned = bool(pin)
        self.host, self.port = "127.0.0.1", 0

    def __enter__(self) -> ServerProcess:
        deadline = time.monotonic() + 120
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start:\n{self._log.read_text()}")
            time.sleep(0.05)
        return self

    def _is_ready(self) -> bool:
        match = START.search(self._log.read_text())
        if match is None:
            return False
        self.port = int(match.group(1).rpartition(":")[2])
        try:
            with urlopen(f"{match.group(1)}/ready") as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._folder.cleanup()

    def cpu_s(self) -> float:
        """User and system seconds of the process and its descendants, all threads."""
        return sum(_cpu_s(pid) for pid in _tree(self.process.pid))


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found


def _cpu_s(pid: int) -> float:
    """By the scheduler's nanoseconds where the kernel keeps them, else by clock ticks."""
    try:
        threads = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
        if threads:
            return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
