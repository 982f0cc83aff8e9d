"""`tokenwire serve ...` in a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

__all__ = ("Served", "serve", "served")

RUN = "import sys; from tokenwire.core.cli import main; sys.exit(main())"
START = re.compile(r" at (http://\S+) ")
MOST_SECONDS = 120


def serve(*arguments: object, folder: Path) -> subprocess.Popen[bytes]:
    """What it prints is in `folder`/log."""
    command = [sys.executable, "-c", RUN, "serve", *map(str, arguments), "--port", "0"]
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environ)


class Served:
    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._log = folder / "log"
        self.url = self._wait(self._started)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def ready(self) -> tuple[int, str]:
        """Status and body of /ready, once it is 200 or says what will not come."""
        return self._wait(self._settled)

    def ask(self, path: str, body: object) -> dict[str, object]:
        data = json.dumps(body).encode()
        request = Request(self.url + path, data, {"content-type": "application/json"})
        with urlopen(request, timeout=MOST_SECONDS) as reply:
            answer: dict[str, object] = json.load(reply)
            return answer

    def _started(self) -> str:
        match = START.search(self.log)
        return match[1] if match else ""

    def _settled(self) -> tuple[int, str] | None:
        try:
            with urlopen(f"{self.url}/ready", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except HTTPError as error:
            text = error.read().decode()
            return None if "is loading" in text else (error.code, text)
        except URLError:
            return None

    def _wait(self, find):
        deadline = time.monotonic() + MOST_SECONDS
        while not (found := find()):
            assert self._process.poll() is None, f"the server ended:\n{self.log}"
            assert time.monotonic() < deadline, f"waited in vain:\n{self.log}"
            time.sleep(0.05)
        return found


@contextmanager
def served(*arguments: object, folder: Path) -> Iterator[Served]:
    process = serve(*arguments, folder=folder)
    try:
        yield Served(process, folder)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
